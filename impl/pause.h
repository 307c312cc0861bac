/* SPDX-License-Identifier: Apache-2.0
 *
 * pause.h - places where a thread may be held up by a test.
 *
 * Whether threads meet in a bad order is luck on a quiet machine. So every place where they can
 * meet names itself here; pause_test links a build of this library in which it may sleep or yield
 * there. In every other build the places are empty.
 */
#ifndef MLA_IMPL_PAUSE_H
#define MLA_IMPL_PAUSE_H

enum mla_pause {
    MLA_PAUSE_GATE,   /* prepared, before the gate */
    MLA_PAUSE_START,  /* past the gate */
    MLA_PAUSE_CLAIM,  /* before a tile, an item or a piece is claimed */
    MLA_PAUSE_COPY,   /* a piece is claimed and not yet copied */
    MLA_PAUSE_SHOW,   /* copied and not yet published */
    MLA_PAUSE_NOTIFY, /* published, and whoever waits has not been told */
    MLA_PAUSE_LOOK,   /* the event counter is read, the piece not yet looked at */
    MLA_PAUSE_WAIT,   /* looked at and found claimed, not yet asleep */
    MLA_PAUSE_WOKEN,
    MLA_PAUSES_N
};

#ifdef MLA_PAUSES
void mla_pause(enum mla_pause place); /* the test's */
#define MLA_PAUSE(place) mla_pause(place)
#else
#define MLA_PAUSE(place) ((void)0)
#endif

#endif
