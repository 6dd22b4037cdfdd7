/** A job with reinforcement learning whose calls are answered without ranks. */

import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type CallResult,
  type Dataset,
  datasetKey,
  type Grade,
  type Grader,
  type Job,
  type JobSpec,
  type StoredCall,
} from '../../../../../contracts/index.js';
import { putCallResult, putOnce, readCall } from '../../../../../formats/calls/call-log.js';
import { callKey } from '../../../../../formats/checkpoint/layout.js';
import type { GradedItem } from '../../../../../graders/grader.js';
import { resolveSpec } from '../../../../../job-document/index.js';
import { EXACT } from '../../../../../job-document/testing/documents.js';
import { type ObjectStore, openObjectStore } from '../../../../../platform/object-store/index.js';
import { withSteps } from '../../context.js';
import { RolloutDriver } from '../rollout-driver.js';

const JOB = 'job_01J00000000000000000000000';
const DATASET_ID = 'ds_01J00000000000000000000000';
const ONCE = { attempts: 1, first_delay_ms: 1, max_delay_ms: 1 };
const LETTERS = 26;

type Objective = NonNullable<NonNullable<JobSpec['train']>['objective']>;

export interface DrivenOptions {
  steps?: number;
  objective?: Partial<Objective>;
  /** Steps between evaluations on the same lines; none by default. */
  evaluated?: number;
  lines?: readonly object[];
  /** Grades an answer in place of EXACT. */
  grade?(graded: GradedItem): Partial<Grade>;
}

const LINES = Array.from({ length: 5 }, (_, i) => ({ prompt: `${i}=`, answer: String(i) }));

/** The log of the job, its store and its graders. Drivers may end and others continue. */
export class DrivenLog {
  appended = 0;
  answered = 0;
  /** Texts that graders have got. */
  readonly graded: string[] = [];
  /** Figures of evaluations, as reported. */
  readonly figures: { step: number; figures: object }[] = [];
  private readonly drivers: RolloutDriver[] = [];

  private constructor(
    private readonly dir: string,
    readonly objects: ObjectStore,
    private readonly job: Job,
    private readonly dataset: Dataset,
    private readonly options: DrivenOptions,
  ) {}

  static async open(options: DrivenOptions = {}): Promise<DrivenLog> {
    const { steps = 4, objective = {}, evaluated, lines = LINES } = options;
    const dir = await mkdtemp(join(tmpdir(), 'zf-driven-'));
    const objects = await openObjectStore(pathToFileURL(dir).href, { create: true });
    const content = Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n'));
    await objects.put(datasetKey(DATASET_ID), content);
    const dataset = {
      id: DATASET_ID,
      format: 'jsonl',
      bytes: content.length,
      digest: `sha256:${createHash('sha256').update(content).digest('hex')}`,
      num_documents: lines.length,
    } as Dataset;
    const aim = { prompts_per_step: 2, group_size: 3, max_tokens: 4, ...objective };
    const { spec, errors } = resolveSpec(
      {
        model: { preset: 'llama-tiny' },
        data: { dataset: DATASET_ID },
        train: {
          steps,
          sequence_length: 16,
          global_batch_size: 4,
          objective: { type: 'grpo', grader: EXACT, ...aim },
          ...(evaluated && {
            evaluation: { every_steps: evaluated, datasets: [{ name: 'again', dataset: DATASET_ID }] },
          }),
        },
      },
      { ...dataset, num_chats: 0, num_preferences: 0, num_labelled: 0, num_prompts: 0, num_tokens: null },
    );
    if (errors.length > 0) throw new Error(JSON.stringify(errors));
    return new DrivenLog(dir, objects, { id: JOB, spec } as Job, dataset, options);
  }

  /** Starts a driver. Resolves when it has ended the log, or rejects with its error. */
  drive(): { driver: RolloutDriver; ended: Promise<void> } {
    const timing = { storage: ONCE };
    const grade = (_: Grader, graded: GradedItem) => this.grade(graded);
    const graders = { of: () => ({ grade }) };
    const store = { getDataset: async () => this.dataset };
    const log = { warn: () => undefined };
    const ctx = {
      log,
      deps: { objects: this.objects, graders, timing, store },
      lease: { call: (act: (id: string) => unknown) => act(JOB), lost: new AbortController().signal },
      job: withSteps(this.job),
      reporter: { evaluated: async (step: number, figures: object) => this.figures.push({ step, figures }) },
    } as unknown as ConstructorParameters<typeof RolloutDriver>[0];
    const driver = new RolloutDriver(ctx, this);
    this.drivers.push(driver);
    const ended = new Promise<void>((resolve, reject) => {
      this.onFinish = resolve;
      driver.begin(reject);
    });
    return { driver, ended };
  }

  onFinish: () => void = () => undefined;
  /** Called before a call is stored; what it throws ends the driver. */
  onAppend: (number: number) => void = () => undefined;

  async append(content: Uint8Array): Promise<void> {
    const number = this.appended + 1;
    this.onAppend(number);
    const before = await putOnce(this.objects, callKey(JOB, number), Buffer.from(content));
    if (before !== null && !before.equals(content)) throw new Error(`call ${number} differs`);
    const call: StoredCall = JSON.parse(Buffer.from(content).toString('utf8'));
    this.appended = number;
    await putCallResult(this.objects, { job_id: JOB, number }, resultOf(call));
    this.answered = number;
    if (call.type === 'finish') this.onFinish();
  }

  async untilAnswered(): Promise<void> {}

  calls(): Promise<StoredCall[]> {
    return Promise.all(Array.from({ length: this.appended }, (_, i) => readCall(this.objects, JOB, i + 1)));
  }

  async close(): Promise<void> {
    await Promise.all(this.drivers.map((driver) => driver.close()));
    await this.objects.close();
    await rm(this.dir, { recursive: true });
  }

  private async grade(graded: GradedItem): Promise<Grade> {
    const { output_text: text } = graded.sample;
    this.graded.push(text);
    const reward = Number(text.startsWith('a'));
    return {
      reward,
      scores: { exact: reward },
      errors: [],
      seconds: 0,
      tokens: {},
      ...this.options.grade?.(graded),
    };
  }
}

/** Samples are letters that the seed determines. */
function resultOf(call: StoredCall): CallResult {
  if (call.type === 'sample') {
    const letter = (at: number) => 97 + ((call.seed + at) % LETTERS);
    const samples = Array.from({ length: call.prompts.length * call.n }, (_, i) => ({
      tokens: [letter(i), letter(2 * i)],
      log_probs: [-1, -2],
      finish: 'length' as const,
    }));
    return { samples };
  }
  return { loss: 0, num_targets: 1, log_probs: [], metrics: {} };
}
