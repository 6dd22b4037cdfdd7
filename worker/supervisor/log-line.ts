import { type JobLog, plainText } from '../../contracts/index.js';

/** A line of a rank's log, before anybody says whose it is. */
export type LogLine = Pick<JobLog, 'at' | 'stream' | 'message' | 'truncated' | 'dropped'>;

/** A longer line is cut; openapi.yaml (JobLog) says so. */
export const MAX_MESSAGE = 2_000;

/** A line of the worker's own. */
export function workerLine(message: string): LogLine {
  return cutLine('worker', plainText(message), false);
}

export function cutLine(stream: LogLine['stream'], text: string, truncated: boolean): LogLine {
  const cut = text.length > MAX_MESSAGE;
  // Not in the middle of a character.
  const message = cut ? text.slice(0, MAX_MESSAGE).replace(/[\ud800-\udbff]$/, '') : text;
  return { at: new Date().toISOString(), stream, message, truncated: truncated || cut, dropped: 0 };
}

/** Says that lines are missing. */
export function droppedLine(dropped: number, why: string): LogLine {
  const lines = dropped === 1 ? '1 line' : `${dropped.toLocaleString('en')} lines`;
  return { ...workerLine(`${lines} dropped: ${why}`), dropped };
}
