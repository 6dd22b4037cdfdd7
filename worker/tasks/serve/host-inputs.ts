import type { HostInput } from '../protocol.js';

/** Input of a host, kept until the model is loaded. */
export class HostInputs {
  private waiting: HostInput[] = [];
  private take: ((input: HostInput) => void) | null = null;

  push(input: HostInput): void {
    if (this.take === null) this.waiting.push(input);
    else this.take(input);
  }

  /** Gives all input to `take`, what waits first. */
  listen(take: (input: HostInput) => void): void {
    this.take = take;
    for (const input of this.waiting.splice(0)) take(input);
  }
}
