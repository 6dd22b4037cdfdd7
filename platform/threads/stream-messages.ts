/**
 * Messages about one stream between its caller and the thread that transforms it. They alternate, so that neither side
 * has more than one piece in memory.
 */
import type { SentError } from './messages.js';

/** Message of the caller: asks for output, or answers a request for input; null: the input has ended. */
export type ToStream = { kind: 'next' } | { kind: 'input'; bytes: Uint8Array | null };

/** Message of the thread: asks for input, or answers a request for output. */
export type FromStream =
  | { kind: 'read' }
  | { kind: 'piece'; bytes: Uint8Array }
  | { kind: 'end' }
  | { kind: 'error'; error: SentError };
