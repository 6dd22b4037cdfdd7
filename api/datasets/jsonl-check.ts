import { ZerofleetError } from '../../contracts/index.js';
import { type LineBatch, LineBatcher } from '../../formats/datasets/line-batches.js';
import { type LineCounts, NO_LINES } from '../contents/check-lines.js';
import type { ContentCheck } from './content-check.js';

/** Checks the lines of a JSONL upload while it arrives. */
export class JsonlCheck implements ContentCheck {
  private readonly lines = new LineBatcher();
  private readonly counts: LineCounts = { num_documents: 0, ...NO_LINES };
  /** Check of the previous batch. */
  private last: Promise<void> = Promise.resolve();

  /** @param checkLines runs in a thread and owns the bytes */
  constructor(private readonly checkLines: (batch: LineBatch) => Promise<LineCounts>) {}

  async push(piece: Uint8Array): Promise<void> {
    // A copy: the network reuses the piece's buffer.
    const batch = this.lines.push(new Uint8Array(piece));
    if (batch !== null) await this.check(batch);
  }

  async end() {
    const batch = this.lines.end();
    if (batch !== null) await this.check(batch);
    await this.last;
    if (this.counts.num_documents === 0)
      throw new ZerofleetError('dataset_empty', 'the body has no document');
    return { ...this.counts, num_tokens: null, max_token: null };
  }

  /** Checks one batch while the next arrives; the error is that of the first bad line. */
  private async check({ bytes, first_line }: LineBatch): Promise<void> {
    const before = this.last;
    this.last = before.then(async () => {
      const found = await this.checkLines({ bytes: new Uint8Array(bytes), first_line });
      this.counts.num_documents += found.num_documents;
      this.counts.num_chats += found.num_chats;
      this.counts.num_preferences += found.num_preferences;
      this.counts.num_labelled += found.num_labelled;
      this.counts.num_prompts += found.num_prompts;
    });
    // The client may disconnect before end() awaits it; an unhandled rejection would end the process.
    this.last.catch(() => undefined);
    await before;
  }
}
