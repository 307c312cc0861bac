/* SPDX-License-Identifier: Apache-2.0 */
#include "results/report_internal.h"
void mla_report_markdown(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
void mla_report_csv(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
void mla_report_json(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
void mla_report_junit(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
void mla_report_sarif(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
void mla_report_github(struct mla_report *r, FILE *f)
{
    (void)r;
    (void)f;
}
