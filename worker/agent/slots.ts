/** The rank slots of this machine. A job takes all that it needs at once or none: half a world can't train. */
export class Slots {
  private used = 0;

  constructor(readonly total: number) {}

  get free(): number {
    return this.total - this.used;
  }

  /** Takes `count` slots. Null when fewer are free, else the function (idempotent) that gives them back. */
  tryReserve(count: number): (() => void) | null {
    if (count > this.free) return null;
    this.used += count;
    let held = true;
    return () => {
      if (held) this.used -= count;
      held = false;
    };
  }
}
