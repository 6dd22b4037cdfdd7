/** The models that are asked, and what they answered. */
import { computed, type Signal, signal } from '@preact/signals';
import { impatient } from '../app/connection.js';
import { type Answer, growing, WAITING } from './answer.js';
import { borrowed } from './borrowed.js';
import { requestFor, type Settings } from './request.js';
import { templateOf } from './template.js';

/** A prompt and its answer. */
interface Turn {
  prompt: string;
  answer: Answer;
  /** The model has no chat template and used that of the other one. */
  isBorrowed: boolean;
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
  async ask(settings: Settings, prompt: string, stopping: AbortSignal, template?: string): Promise<void> {
    const model = this.model.value.trim();
    const before = settings.mode === 'chat' ? this.turns.value : [];
    const messages = before
      .filter(({ answer: { phase } }) => phase === 'done' || phase === 'stopped')
      .flatMap(({ prompt, answer: { text } }) => [
        { role: 'user', content: prompt },
        { role: 'assistant', content: text },
      ]);
    const body = requestFor(settings, prompt, messages, template);
    const turn = { prompt, isBorrowed: template !== undefined };
    this.turns.value = [...before, { ...turn, answer: WAITING }];
    for await (const answer of growing(
      (signal) => impatient.samples.stream(model, body, { signal }),
      stopping,
    ))
      this.turns.value = [...before, { ...turn, answer }];
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
      const sides = this.list.value;
      const templates =
        settings.mode === 'chat' && sides.length > 1
          ? borrowed(await Promise.all(sides.map(({ model }) => templateOf(model.value.trim()))))
          : [];
      await Promise.all(sides.map((side, i) => side.ask(settings, prompt, stopping.signal, templates[i])));
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
