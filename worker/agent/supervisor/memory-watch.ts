/** Memory of the ranks of a world, as their heartbeats report it. */
export class MemoryWatch {
  private readonly newest = new Map<number, number>();
  private most = 0;

  measured(rank: number, bytes: number): void {
    this.newest.set(rank, bytes);
    this.most = Math.max(this.most, bytes);
  }

  /** Returns the most bytes that one of the ranks used since the last call; 0 before any report. */
  take(): number {
    const { most } = this;
    this.most = Math.max(0, ...this.newest.values());
    return most;
  }
}
