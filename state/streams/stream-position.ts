/** A place in a job's stream: behind the entry `seq` of the stream of this name. */
export interface StreamPosition {
  /** Another one for each stream that the job has: after a loss of Redis `seq` counts from 1 again. */
  stream: string;
  seq: number;
  /** Of the entry. After a failover that lost the end of the stream another entry has this `seq`, but not this stamp. */
  stamp: number;
}

/** The `position` of an entry, as in `3fa91c0b-41-660da8a518800`. */
export function formatPosition({ stream, seq, stamp }: StreamPosition): string {
  return `${stream}-${seq}-${stamp.toString(16)}`;
}

/** @param text in the form of the contract's `StreamPosition` */
export function parsePosition(text: string): StreamPosition {
  const [stream = '', seq, stamp = ''] = text.split('-');
  return { stream, seq: Number(seq), stamp: Number.parseInt(stamp, 16) };
}
