/* SPDX-License-Identifier: Apache-2.0
 *
 * criteria.c - the table of published rules.
 *
 * Facts looked up in public sources: thresholds, strict or not, and what they do with zeros. Adding
 * one: a function and a line in the table (at its end: the place is a bit).
 */
#include "fuzz/criteria.h"

#include <math.h>

#include "fuzz/metrics.h"

enum { BREAKS_ALLCLOSE_1 = 1, BREAKS_ALLCLOSE_2 = 2, BREAKS_FLASHMLA = 4 };

uint32_t mla_criteria_element(double error, double value)
{
    double e = fabs(error), v = fabs(value);
    bool allclose_1 = e <= 1e-2 + 1e-2 * v, allclose_2 = e <= 2e-2 + 2e-2 * v;
    bool flashmla = (e < 8e-4) | (e < 3.01 / 128 * (v + 1e-6)); /* no branch: see metrics.c */
    return (allclose_1 ? 0 : BREAKS_ALLCLOSE_1) | (allclose_2 ? 0 : BREAKS_ALLCLOSE_2) |
           (flashmla ? 0 : BREAKS_FLASHMLA);
}

/*
 * Pearson's coefficient as comp_pcc judges it: masked arrays turn the 0/0 of a constant tensor into
 * "passed", except that all zeros against something else fails first. So a constant output of any
 * value passes against a constant truth, and against a varying one.
 */
static bool pcc(const struct mla_metrics_sums *s, double threshold)
{
    double n = (double)s->elements_n;
    double value_spread = n * s->value_moment - s->value_sum * s->value_sum;
    double got_spread = n * s->got_moment - s->got_sum * s->got_sum;
    double together = n * s->product_moment - s->value_sum * s->got_sum;
    if ((s->value2 > 0) != (s->got2 > 0))
        return false;
    if (s->value_moment == 0 || s->got_moment == 0)
        return true;
    return together / (sqrt(value_spread) * sqrt(got_spread)) >= threshold;
}

static bool ring_full(const struct mla_metrics_sums *s)
{
    return pcc(s, 0.994) && sqrt(s->error2 / (double)s->elements_n) < 0.05;
}

static bool ring_chunked(const struct mla_metrics_sums *s)
{
    return pcc(s, 0.99);
}

/* 1 - 2 sum(xy)/sum(x^2+y^2), which is sum (x-y)^2 / sum(x^2+y^2) without the cancellation. Zeros
 * against zeros are 0/0: NaN, which no `<` accepts. So it was in the cited file; later versions of it
 * return 0 there and pass. FlashMLA's divides by 1e-12 at least, which gives 1 and fails too. */
static double calc_diff(const struct mla_metrics_sums *s)
{
    return s->error2 / (s->value2 + s->got2);
}

static bool calc_diff_1e3(const struct mla_metrics_sums *s)
{
    return calc_diff(s) < 1e-3;
}

static bool calc_diff_1e5(const struct mla_metrics_sums *s)
{
    return calc_diff(s) < 1e-5;
}

/* Over the square of the tested output, not of the reference; zeros against zeros pass. */
static bool nmse(const struct mla_metrics_sums *s)
{
    return s->error2 == 0 || s->error2 / s->got2 <= 5e-4;
}

static bool passes_allclose_1(const struct mla_metrics_sums *s)
{
    return (s->elements_broken & BREAKS_ALLCLOSE_1) == 0;
}

static bool passes_allclose_2(const struct mla_metrics_sums *s)
{
    return (s->elements_broken & BREAKS_ALLCLOSE_2) == 0;
}

/* One tolerance for the whole tensor, from its largest reference value. */
static bool global_max(const struct mla_metrics_sums *s)
{
    return s->max_error <= 0.05 + 0.05 * s->max_value;
}

/* Every element near in absolute or in relative terms, and the cosine difference small; that is
 * taken as 0 when the reference vanishes. */
static bool passes_flashmla(const struct mla_metrics_sums *s)
{
    double cosine = s->value2 < 1e-12 ? 0 : calc_diff(s);
    return (s->elements_broken & BREAKS_FLASHMLA) == 0 && cosine <= 1e-5;
}

#define NAMES(name) name, "would_pass_" name

static const struct mla_criterion criteria[] = {
    {NAMES("ring_full"), "PCC >= 0.994 and RMSE < 0.05",
     "tenstorrent/tt-metal tests/nightly/blackhole/sdpa/test_ring_joint_sdpa.py (run_ring_mla_sdpa)"
     " and models/common/utility_functions.py (comp_pcc)",
     ring_full},
    {NAMES("ring_chunked"), "PCC >= 0.99",
     "tenstorrent/tt-metal tests/nightly/blackhole/sdpa/test_ring_joint_sdpa.py"
     " (CHUNKED_PREFILL_PCC_THRESHOLD)",
     ring_chunked},
    {NAMES("calc_diff_1e3"), "1 - 2 sum(xy)/sum(x^2+y^2) < 1e-3",
     "deepseek-ai/DeepGEMM deep_gemm/testing/numeric.py, threshold of tests/test_attention.py",
     calc_diff_1e3},
    {NAMES("calc_diff_1e5"), "1 - 2 sum(xy)/sum(x^2+y^2) < 1e-5",
     "deepseek-ai/DeepGEMM deep_gemm/testing/numeric.py, threshold of tests/test_bf16.py; the same"
     " in vllm-project/FlashMLA tests/test_flash_mla.py",
     calc_diff_1e5},
    {NAMES("nmse_5e4"), "sum (y-o)^2 / sum y^2 <= 5e-4",
     "ggml-org/llama.cpp tests/test-backend-ops.cpp (nmse, test_flash_attn_ext)", nmse},
    {NAMES("allclose_1e2"), "|y-o| <= 0.01 + 0.01 |o| everywhere",
     "vllm-project/vllm tests/kernels/attention/test_flashinfer_mla_decode.py", passes_allclose_1},
    {NAMES("allclose_2e2"), "|y-o| <= 0.02 + 0.02 |o| everywhere",
     "vllm-project/vllm tests/kernels/attention/test_flashinfer_mla_decode.py (sparse)",
     passes_allclose_2},
    {NAMES("global_max_5e2"), "|y-o| <= 0.05 + 0.05 max|o| everywhere",
     "aws-neuron/nki-library test/integration/nkilib/experimental/mla/"
     "test_mla_sparse_attention_cte.py and test/utils/comparators.py (mode max)",
     global_max},
    {NAMES("flashmla"),
     "|y-o| < 8e-4 or |y-o|/(|o|+1e-6) < 3.01/128 everywhere, and calc_diff <= 1e-5",
     "deepseek-ai/FlashMLA tests/test-sparse-prefill.py and tests/kernelkit/compare.py",
     passes_flashmla},
};
#define CRITERIA_N (sizeof criteria / sizeof criteria[0])

const struct mla_criterion *mla_criteria(size_t *criteria_n)
{
    *criteria_n = CRITERIA_N;
    return criteria;
}

uint32_t mla_criteria_judge(const struct mla_metrics_sums *sums)
{
    uint32_t passed = 0;
    if (sums->elements_n == 0 || sums->nonfinite_n > 0)
        return 0;
    for (size_t i = 0; i < CRITERIA_N; i++)
        passed |= criteria[i].passes(sums) ? 1u << i : 0;
    return passed;
}
