/** Which page of a list is read again next: the first one, and in turn with it one of the others that were loaded. */

/** The end of a page, after which the next one begins. */
interface PageEnd {
  cursor: string;
  /** Id of the last entry of the page. */
  below: string;
}

export class PageRotation {
  private first: PageEnd | null = null;
  private other: PageEnd | null = null;
  private isFirst = true;

  /** Returns the page before the one to read; null for the first one. */
  next(): PageEnd | null {
    return this.isFirst ? null : (this.other ?? this.first);
  }

  /**
   * Notes that the page was read.
   * @param before as `next` returned it
   * @param end null if no page follows
   * @param oldest id of the oldest entry that was loaded
   */
  read(before: PageEnd | null, end: PageEnd | null, oldest: string): void {
    const following = end !== null && end.below > oldest ? end : null;
    if (before === null) this.first = following;
    else this.other = following;
    this.isFirst = before !== null || this.first === null;
  }
}
