/** A position in a job's stream: after the entry `seq` of the stream of this name. */
interface StreamPosition {
  /** Name of the stream, unique per stream of the job: after a loss of Redis `seq` restarts at 1. */
  stream: string;
  seq: number;
  /**
   * Stamp of the entry. After a failover that lost the end of the stream another entry has this `seq`, but not this
   * stamp.
   */
  stamp: number;
}

/** Formats the `position` of an entry, such as `3fa91c0b-41-660da8a518800`. */
export function formatPosition({ stream, seq, stamp }: StreamPosition): string {
  return `${stream}-${seq}-${stamp.toString(16)}`;
}

/** @param text in the form of the contract's `StreamPosition` */
export function parsePosition(text: string): StreamPosition {
  const [stream = '', seq, stamp = ''] = text.split('-');
  return { stream, seq: Number(seq), stamp: Number.parseInt(stamp, 16) };
}
