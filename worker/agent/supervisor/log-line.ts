import { type JobLog, plainText } from '../../../contracts/index.js';

/** Line of a rank's log, without its rank. */
export type LogLine = Pick<JobLog, 'at' | 'stream' | 'message' | 'truncated' | 'dropped'>;

/** Maximum length of a line, documented in openapi.yaml (JobLog). */
export const MAX_MESSAGE = 2_000;

/** Creates a line of the worker itself. */
export function workerLine(message: string): LogLine {
  return cutLine('worker', plainText(message), false);
}

export function cutLine(stream: LogLine['stream'], text: string, truncated: boolean): LogLine {
  const cut = text.length > MAX_MESSAGE;
  // Does not split a surrogate pair.
  const message = cut ? text.slice(0, MAX_MESSAGE).replace(/[\ud800-\udbff]$/, '') : text;
  return { at: new Date().toISOString(), stream, message, truncated: truncated || cut, dropped: 0 };
}

/** Creates a line about dropped lines. */
export function droppedLine(dropped: number, why: string): LogLine {
  const lines = dropped === 1 ? '1 line' : `${dropped.toLocaleString('en')} lines`;
  return { ...workerLine(`${lines} dropped: ${why}`), dropped };
}
