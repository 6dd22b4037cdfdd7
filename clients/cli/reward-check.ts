import { isDeepStrictEqual } from 'node:util';
import type { Job, StoredCall } from '../../contracts/index.js';
import { placeOf, type RolloutPlan, rewardedSamples, rolloutPlan, rowsOf } from '../../job-document/index.js';
import type { Zerofleet } from '../typescript/index.js';

type Rows = ReturnType<typeof rowsOf>;

/** Compares the passes of a job with reinforcement learning with the rewards that it has recorded. */
export class RewardCheck {
  private readonly plan: RolloutPlan;
  private last: { rollout: number; rows: Rows } | null = null;

  constructor(
    private readonly client: Pick<Zerofleet, 'calls'>,
    private readonly job: Pick<Job, 'id' | 'spec'>,
  ) {
    this.plan = rolloutPlan(job.spec.train);
  }

  /** Returns the first row that the rewards do not give; null for none. */
  async differenceOf(
    number: number,
    call: StoredCall,
  ): Promise<{ field: string; before: unknown; now: unknown } | null> {
    const place = placeOf(this.plan, number);
    if (place.kind !== 'pass' || !('rows' in call)) return null;
    const expected = (await this.rowsOf(place.rollout)).slice(place.begin, place.end);
    const { loss } = this.plan.settings;
    if (!isDeepStrictEqual(call.loss, loss))
      return { field: 'loss, which the document has', before: call.loss, now: loss };
    if (call.rows.length > expected.length)
      return { field: 'its number of rows', before: call.rows.length, now: expected.length };
    const at = expected.findIndex((row, i) => !isDeepStrictEqual(row, call.rows[i]));
    if (at < 0) return null;
    const [row, given] = [expected[at], call.rows[at]];
    const name = (['tokens', 'targets', 'log_probs', 'advantages', 'weights'] as const).find(
      (list) => !isDeepStrictEqual(row?.[list], given?.[list]),
    );
    return {
      field: `rows[${at}].${name}, which the recorded rewards give`,
      before: name && given?.[name],
      now: name && row?.[name],
    };
  }

  private async rowsOf(rollout: number): Promise<Rows> {
    if (this.last?.rollout !== rollout) {
      const { id } = this.job;
      const step = rollout * this.plan.settings.num_iterations + 1;
      const rewards = await this.client.calls.rollout(id, step);
      const call = await this.client.calls.get(id, rewards.call);
      const result = await this.client.calls.result(id, rewards.call);
      const prompts = 'prompts' in call ? call.prompts : [];
      const samples = 'samples' in result ? result.samples : [];
      this.last = { rollout, rows: rowsOf(rewardedSamples(rewards, prompts, samples), this.plan.settings) };
    }
    return this.last.rows;
  }
}
