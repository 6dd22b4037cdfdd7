/** A place in a job's stream: behind the entry `seq` of the stream of this name. */
export interface StreamPosition {
  /** Another one for each stream that the job has: after a loss of Redis `seq` counts from 1 again. */
  stream: string;
  seq: number;
}

/** The `position` of an entry, as in `3fa91c0b-41`. */
export function formatPosition({ stream, seq }: StreamPosition): string {
  return `${stream}-${seq}`;
}

/** @param text in the form of the contract's `StreamPosition` */
export function parsePosition(text: string): StreamPosition {
  const [stream = '', seq] = text.split('-');
  return { stream, seq: Number(seq) };
}
