/** Training sessions over HTTP. */
import type { Zerofleet } from '../../clients/typescript/index.js';
import { type Call, type CallResult, isFinal, type JobSpec } from '../../contracts/index.js';
import { smallJob } from './specs.js';
import { sampleText } from './stack.js';

const WAIT_SECONDS = 10;
const LR = 2e-3;

/** A session of the small job's model. */
export function smallSession(name: string, ranks: number): JobSpec {
  const { data: _, train, ...job } = smallJob({ name, dataset: '', steps: 0, ranks, every_steps: 2 });
  const { steps: _steps, lr_schedule: _schedule, ...session } = train ?? {};
  return { ...job, data: { tokenizer: 'bytes' }, train: { ...session, session: {} } };
}

type Row = Extract<Call, { rows: unknown }>['rows'][number];

/** Rows of different lengths from the sample text, each predicting its next byte. */
export function textRows(first: number, count: number): Row[] {
  const bytes = [...Buffer.from(sampleText())];
  return Array.from({ length: count }, (_, i) => {
    const [begin, length] = [31 * (first + i), 5 + (((first + i) * 7) % 40)];
    const targets = bytes.slice(begin + 1, begin + length + 1);
    return {
      tokens: bytes.slice(begin, begin + length),
      targets: targets.map((id, at) => (at === 2 ? -100 : id)),
    };
  });
}

/** A pass with the gradients of text rows. */
export function textPass(first: number, count: number): Call {
  return { type: 'forward_backward', loss: { type: 'cross_entropy' }, rows: textRows(first, count) };
}

export const UPDATE: Call = { type: 'optim_step', lr: LR, gradient_clipping: 5 };

/** A session that was created; its calls have the next numbers. */
export class ClientSession {
  private number = 0;

  private constructor(
    private readonly client: Zerofleet,
    readonly id: string,
  ) {}

  static async create(client: Zerofleet, spec: JobSpec): Promise<ClientSession> {
    return new ClientSession(client, (await client.jobs.create(spec)).id);
  }

  /** Appends a call. Returns its number. */
  async append(call: Call): Promise<number> {
    await this.client.calls.put(this.id, this.number + 1, call);
    this.number += 1;
    return this.number;
  }

  /** Waits for a result. Throws when the session has ended without it. */
  async result(number: number): Promise<CallResult> {
    for (;;) {
      const { result } = await this.client.calls.answer(this.id, number, { waitSeconds: WAIT_SECONDS });
      if (result) return result;
      const job = await this.client.jobs.get(this.id);
      if (isFinal(job.state))
        throw new Error(
          `call ${number} has no result, and the job is ${job.state}: ${JSON.stringify(job.failure)}`,
        );
    }
  }

  /** Appends calls at once. Returns their results. */
  async run(...calls: Call[]): Promise<CallResult[]> {
    const numbers: number[] = [];
    for (const call of calls) numbers.push(await this.append(call));
    const results: CallResult[] = [];
    for (const number of numbers) results.push(await this.result(number));
    return results;
  }
}
