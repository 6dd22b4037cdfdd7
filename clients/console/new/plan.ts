/** The server's opinion of a draft, which is asked for when the draft has not changed for a moment. */
import { signal } from '@preact/signals';
import type { DataPreview, DryRun } from '../../../contracts/types.js';
import { client, type Fault, faultOf, isAborted } from '../app/connection.js';
import { may } from '../app/session.js';
import { Fields } from '../parts/fields.js';
import { asSpec, type Draft, dataPartOf, valueAt } from './draft.js';

/** Pause in writing after which the draft is checked. */
const PAUSE_MS = 400;
/** Texts of a preview. */
const TEXTS = 3;

export class Plan {
  /** The job that the draft would become; null while it is not valid. */
  readonly dryRun = signal<DryRun | null>(null);
  /** The last valid draft with every default, which stays while another one is written. */
  readonly resolved = signal<DryRun['spec'] | null>(null);
  private readonly fault = signal<Fault | null>(null);
  readonly fields = new Fields(this.fault);
  readonly preview = signal<DataPreview | null>(null);
  readonly previewFault = signal<Fault | null>(null);
  readonly isChecking = signal(false);
  private stopping = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private previewed: string | null = null;

  /** Checks a draft after a pause. A draft without data waits for them. */
  check(draft: Draft): void {
    this.close();
    if (dataPartOf(draft) !== this.previewed) this.forgetPreview();
    const data = ['dataset', 'uri', 'mixture'].find((name) => valueAt(draft, ['data', name]) !== undefined);
    this.isChecking.value = data !== undefined;
    if (data === undefined) {
      this.dryRun.value = null;
      this.fault.value = null;
      return;
    }
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    this.timer = setTimeout(() => void this.ask(draft, signal), PAUSE_MS);
  }

  close(): void {
    clearTimeout(this.timer);
    this.stopping.abort();
  }

  private async ask(draft: Draft, signal: AbortSignal): Promise<void> {
    try {
      const dryRun = await client.jobs.dryRun(asSpec(draft), { signal });
      if (signal.aborted) return;
      this.dryRun.value = dryRun;
      this.resolved.value = dryRun.spec;
      this.fault.value = null;
    } catch (error) {
      if (signal.aborted || isAborted(error)) return;
      this.dryRun.value = null;
      this.fault.value = faultOf(error);
    } finally {
      if (!signal.aborted) this.isChecking.value = false;
    }
    if (this.dryRun.value !== null) await this.read(draft, signal);
  }

  /** Reads the beginning of the data, unless nothing has changed that decides it. */
  private async read(draft: Draft, signal: AbortSignal): Promise<void> {
    const part = dataPartOf(draft);
    if (part === this.previewed || !may('datasets')) return;
    this.previewFault.value = null;
    try {
      const preview = await client.previewData(asSpec(draft), TEXTS, { signal });
      if (signal.aborted) return;
      this.preview.value = preview;
      this.previewed = part;
    } catch (error) {
      if (signal.aborted || isAborted(error)) return;
      this.previewFault.value = faultOf(error);
    }
  }

  private forgetPreview(): void {
    this.previewed = null;
    this.preview.value = null;
    this.previewFault.value = null;
  }
}
