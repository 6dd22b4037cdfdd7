import { SingleBar } from 'cli-progress';
import type { Context } from './context.js';

/**
 * A progress bar drawn in place, followed by `text`. `text` must not contain `eta`: the bar replaces it with its own
 * estimate.
 */
export function progressBar({ environment }: Context, text: string): SingleBar {
  return new SingleBar({
    format: `{bar} {percentage} %  ${text}`,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    barsize: 12,
    hideCursor: true,
    gracefulExit: false,
    linewrap: false,
    stream: environment.stdout as NodeJS.WritableStream,
  });
}
