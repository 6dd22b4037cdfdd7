/**
 * The run of a job in W&B. Its id comes from that of the job, so that not even a loss of the state begins a second one.
 * Each step is one line of the history with a number, so that a request may be repeated.
 */
import type { Integration, Job } from '../../contracts/index.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import type { BegunRun, KnownRun, LogRequest, TrackerRun } from './run.js';
import type { TrackerClient } from './tracker-client.js';
import { type EndedJob, outcomeOf, runNameOf } from './values.js';
import { type StoredWandbRun, WandbClient, type WandbRunName } from './wandb-client.js';
import {
  batchesOf,
  configOf,
  EXIT_CODES,
  lineOf,
  newestStepOf,
  numbersOf,
  rowOf,
  runIdOf,
  summaryLine,
  tagsOf,
} from './wandb-values.js';

/** Values of about 200 KB; W&B takes more, but a longer request would hold up the event loop. */
const MAX_VALUES = 5000;

const Own = Type.Object({
  /** Lines of the history that the run has. */
  lines: Type.Integer(),
  /** Newest value of each metric; null for one that is not finite. */
  summary: Type.Record(Type.String(), Type.Union([Type.Number(), Type.Null()])),
});
type Own = Readonly<Static<typeof Own>>;
const owns = new Check(Own);

export class WandbRun implements TrackerRun {
  readonly maxValues = MAX_VALUES;
  private readonly client: WandbClient;

  /** @param index of the integration in the document */
  constructor(
    http: TrackerClient,
    private readonly integration: Integration,
    private readonly index: number,
  ) {
    this.client = new WandbClient(http);
  }

  async begin(job: Job): Promise<BegunRun> {
    const { stored, path } = await this.open(job);
    const own = { lines: stored?.historyLineCount ?? 0, summary: numbersOf(stored?.summaryMetrics ?? null) };
    const step = newestStepOf(stored?.historyTail ?? null);
    return { run_id: path, step, own, details: { url: this.client.pageOf(path) } };
  }

  async reopen(job: Job, run: KnownRun): Promise<Own> {
    // The default entity of the key may have changed.
    const [entity] = run.run_id.split('/');
    const { stored } = await this.open(job, entity);
    const { lines, summary } = ownOf(run);
    // Somebody may have logged more to the run.
    return { lines: Math.max(lines, stored?.historyLineCount ?? 0), summary };
  }

  /** Continues the run as people have changed it, or creates it. */
  private async open(
    job: Job,
    entity = this.integration.entity,
  ): Promise<{ stored: StoredWandbRun | null; path: string }> {
    const { project = '' } = this.integration;
    const run: WandbRunName = { name: runIdOf(job.id, this.index), project, ...(entity && { entity }) };
    const stored = await this.client.find(run);
    const displayName = runNameOf(job, this.integration);
    const fields =
      stored === null ? { displayName, config: configOf(job), tags: tagsOf(job.spec) } : undefined;
    return { stored, path: await this.client.upsert(run, fields) };
  }

  async *log({ job, run, items, limit }: LogRequest) {
    let { lines, summary } = ownOf(run);
    const start = Date.parse(job.created_at);
    const rows = items.map((item) => rowOf(item, start));
    for (const batch of batchesOf(rows, limit)) {
      summary = Object.assign({}, summary, ...batch);
      await this.client.stream(run.run_id, {
        files: {
          'wandb-history.jsonl': { offset: lines, content: batch.map(lineOf) },
          'wandb-summary.json': { offset: 0, content: [summaryLine(summary)] },
        },
      });
      lines += batch.length;
      yield { step: summary._step ?? run.step, own: { lines, summary } };
    }
  }

  async finish(job: EndedJob, run: KnownRun): Promise<void> {
    const content = [summaryLine(ownOf(run).summary, outcomeOf(job))];
    const files = { 'wandb-summary.json': { offset: 0, content } };
    await this.client.stream(run.run_id, { files, complete: true, exitcode: EXIT_CODES[job.state] });
  }

  /** W&B shows a run as crashed that has sent nothing for five minutes. */
  async beat({ run_id }: KnownRun): Promise<void> {
    await this.client.stream(run_id, {});
  }
}

function ownOf({ own }: KnownRun): Own {
  return owns.fits(own) ? own : { lines: 0, summary: {} };
}
