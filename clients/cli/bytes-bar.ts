import { bytes } from '../text/numbers.js';
import { progressBar } from './bar.js';
import type { Context } from './context.js';

/** Progress of a transfer. */
interface BytesView {
  /** Shows the current item; a separate line where nothing can be drawn in place. */
  label(text: string): void;
  /** Adds transferred bytes; negative when something has to be transferred again. */
  add(count: number): void;
  close(): void;
}

/** A bar over `total` bytes in a terminal, otherwise one line per label. */
export function bytesView(context: Context, total: number): BytesView {
  if (!context.interactive) {
    return { label: (text) => context.note(text), add: () => undefined, close: () => undefined };
  }
  const bar = progressBar(context, '{done} of {size}  {label}');
  let done = 0;
  let label = '';
  const payload = () => ({ done: bytes(done), size: bytes(total), label });
  bar.start(Math.max(1, total), 0, payload());
  return {
    label(text) {
      label = text;
      bar.update(done, payload());
    },
    add(count) {
      done += count;
      bar.update(Math.min(done, total), payload());
    },
    close: () => bar.stop(),
  };
}
