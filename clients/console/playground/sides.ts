/** The models that are asked, and what they answered. */
import { computed, type Signal, signal } from '@preact/signals';
import { impatient } from '../app/connection.js';
import { type Answer, growing, WAITING } from './answer.js';
import { requestFor, type Settings } from './request.js';

/** A prompt and its answer. */
interface Turn {
  prompt: string;
  answer: Answer;
}

let made = 0;

export class OneSide {
  readonly key = made++;
  readonly model: Signal<string>;
  /** Of a chat, or the one of a text. */
  readonly turns: Signal<readonly Turn[]> = signal([]);

  constructor(model: string) {
    this.model = signal(model);
  }

  /** Asks the model; errors are part of the answer. */
  async ask(settings: Settings, prompt: string, stopping: AbortSignal): Promise<void> {
    const model = this.model.value.trim();
    const before = settings.mode === 'chat' ? this.turns.value : [];
    const messages = before
      .filter(({ answer: { phase } }) => phase === 'done' || phase === 'stopped')
      .flatMap(({ prompt, answer: { text } }) => [
        { role: 'user', content: prompt },
        { role: 'assistant', content: text },
      ]);
    const body = requestFor(settings, prompt, messages);
    this.turns.value = [...before, { prompt, answer: WAITING }];
    for await (const answer of growing(
      (signal) => impatient.samples.stream(model, body, { signal }),
      stopping,
    ))
      this.turns.value = [...before, { prompt, answer }];
  }
}

export class Sides {
  readonly list: Signal<readonly OneSide[]>;
  readonly isBusy = signal(false);
  readonly isReady = computed(() => this.list.value.every(({ model }) => model.value.trim() !== ''));
  private stopping = new AbortController();

  constructor(model: string) {
    this.list = signal([new OneSide(model)]);
  }

  /** Asks every model the same. */
  async ask(settings: Settings, prompt: string): Promise<void> {
    if (this.isBusy.value || !this.isReady.value) return;
    const stopping = new AbortController();
    this.stopping = stopping;
    this.isBusy.value = true;
    try {
      await Promise.all(this.list.value.map((side) => side.ask(settings, prompt, stopping.signal)));
    } finally {
      this.isBusy.value = false;
    }
  }

  stop(): void {
    this.stopping.abort();
  }

  /** Adds the second model, or takes it away. Both begin anew, so that they know the same. */
  toggleSecond(): void {
    this.clear();
    const [first = new OneSide('')] = this.list.value;
    this.list.value = this.list.value.length === 1 ? [first, new OneSide('')] : [first];
  }

  clear(): void {
    this.stop();
    // A stopped side may still write its last state: new sides do not show it.
    this.list.value = this.list.value.map(({ model }) => new OneSide(model.value));
  }
}
