/* SPDX-License-Identifier: Apache-2.0
 *
 * bad_no_symbol.c - a plug-in that exports something, but not mla_plugin_kernels.
 */
int mla_bad_something_else(void);

int mla_bad_something_else(void)
{
    return 1;
}
