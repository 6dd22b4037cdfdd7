import { drawnBar } from './bar.js';
import type { Context } from './context.js';
import { bytes } from './format.js';

/** How far a transfer is. */
export interface BytesView {
  /** What is transferred now: a line of its own where nothing can be drawn. */
  label(text: string): void;
  /** Bytes more; fewer when something has to be transferred anew. */
  add(count: number): void;
  close(): void;
}

/** A bar over `total` bytes in a terminal, else a line for each label. */
export function bytesView(context: Context, total: number): BytesView {
  if (!context.interactive) {
    return { label: (text) => context.note(text), add: () => undefined, close: () => undefined };
  }
  const bar = drawnBar(context, '{done} of {size}  {label}');
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
