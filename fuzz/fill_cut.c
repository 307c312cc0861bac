/* SPDX-License-Identifier: Apache-2.0
 *
 * fill_cut.c - numbers of few significant bits, cut toward zero.
 */
#include "fuzz/fill.h"

static uint16_t cut(uint16_t word, int bits)
{
    uint32_t magnitude = word & 0x7fffu, exponent = magnitude >> 7;
    int lead = 7; /* of a normal number: its hidden bit */
    if (exponent == 0xff || magnitude == 0)
        return word;
    while (exponent == 0 && (magnitude >> lead & 1u) == 0)
        lead--;
    int drop = lead + 1 - bits;
    return drop <= 0 ? word : (uint16_t)(word >> drop << drop);
}

static void cut_words(uint16_t *words, int64_t n, int bits)
{
    for (int64_t i = 0; i < n; i++)
        words[i] = cut(words[i], bits);
}

void mla_fill_cut(struct mla_tensors *tensors)
{
    int bits = (int)tensors->test.bits;
    for (size_t i = 0; i < tensors->n && bits < MLA_CASE_BITS_ALL; i++) {
        struct mla_tensor *tensor = &tensors->list[i];
        uint16_t *words = (uint16_t *)(void *)tensor->guard.data;
        if (tensor->role != MLA_TENSOR_INPUT || tensor->element_bytes != sizeof *words)
            continue;
        if (tensor->made == NULL)
            cut_words(words, tensor->elements_n, bits);
        for (size_t e = 0; e < tensor->made_n; e++) /* the rest of a thin cache is not there */
            cut_words(words + tensor->made[e].from * tensor->row_elements,
                      (tensor->made[e].to - tensor->made[e].from) * tensor->row_elements, bits);
    }
}
