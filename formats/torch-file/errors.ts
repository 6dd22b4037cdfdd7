import { ZerofleetError } from '../../contracts/index.js';

/** Names are untrusted text, so messages truncate them. */
const SHOWN = 200;

/** @param file names the file in the message */
export function malformed(file: string, problem: string): ZerofleetError {
  return new ZerofleetError('torch_file_invalid', `${file}: ${problem}`, { details: { file } });
}

/**
 * Returns the error for a pickle that needs more than tensors and plain values. Nothing of it was executed.
 */
export function unsafe(file: string, problem: string): ZerofleetError {
  return new ZerofleetError(
    'torch_file_unsafe',
    `${file}: its pickle ${problem}; only tensors and plain values are read, and no code is ever run`,
    { details: { file } },
  );
}

export function shown(name: string): string {
  return JSON.stringify(name.slice(0, SHOWN));
}
