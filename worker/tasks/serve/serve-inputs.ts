import type { ServeInput } from '../protocol.js';

/** Keeps the messages of the agent until the model is loaded. */
export class ServeInputs {
  private waiting: ServeInput[] = [];
  private take: ((input: ServeInput) => void) | null = null;

  push(input: ServeInput): void {
    if (this.take === null) this.waiting.push(input);
    else this.take(input);
  }

  /** Passes all input to `take`, starting with the input that waits. */
  listen(take: (input: ServeInput) => void): void {
    this.take = take;
    for (const input of this.waiting.splice(0)) take(input);
  }
}
