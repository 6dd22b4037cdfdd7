import { ZerofleetError } from '../../contracts/index.js';

/** Names are anyone's text; only so much of one is repeated. */
const SHOWN = 200;

/** @param file names the file in the message */
export function malformed(file: string, problem: string): ZerofleetError {
  return new ZerofleetError('torch_file_invalid', `${file}: ${problem}`, { details: { file } });
}

/** A pickle that asks for more than tensors and plain values are made of. Nothing of it was executed. */
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
