import { SingleBar } from 'cli-progress';
import type { Context } from './context.js';

/** A bar that is drawn in place, with `text` behind it. Not `eta` in it: that word of the bar is a reckoning of its own. */
export function drawnBar({ world }: Context, text: string): SingleBar {
  return new SingleBar({
    format: `{bar} {percentage} %  ${text}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 12,
    hideCursor: true,
    gracefulExit: false,
    linewrap: false,
    stream: world.stdout as NodeJS.WritableStream,
  });
}
