import t, { type Test } from 'tap';
import { type JobMetric, type ReportedProgress, ZerofleetError } from '../../../contracts/index.js';
import { createLogger } from '../../../platform/logging/logging.js';
import type { JobExecution } from '../../../state/index.js';
import { control } from '../../testing/held-lease.js';
import { STEP_SECONDS, stepped } from '../../testing/stepped.js';
import { Lease } from '../lease/lease.js';
import { ProgressReporter } from './progress-reporter.js';

const log = createLogger({ level: 'silent', name: 'test' });
type Report = JobExecution['report'];
const WORLD = { world_size: 1, memory_bytes: 4096, system: null, total_steps: 900 };

interface Options {
  evaluations?: ReportedProgress['evaluations'];
  train?: ConstructorParameters<typeof ProgressReporter>[0]['train'];
  /** Metrics that the store has. */
  stored?: JobMetric[];
}

function reporter(t: Test, report: Report, { evaluations, train, stored = [] }: Options = {}) {
  const readSteps = async () => stored;
  const renewLease = async () => control;
  const onControl = () => undefined;
  const lease = new Lease(
    { store: { renewLease }, job_id: 'j', execution: '1-a', lease_ms: 60_000, log, onControl },
    performance.now(),
  );
  const progress = new ProgressReporter({
    store: { report, readSteps },
    lease,
    interval_ms: 60_000,
    log,
    evaluations,
    train,
  });
  t.teardown(async () => {
    lease.lose(new Error('test ends'));
    await progress.close();
    await lease.close();
  });
  return { progress, lease };
}

t.test('steps are written in batches, in order, with the progress of the last', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  for (let i = 1; i <= 450; i++) progress.stepped(stepped(i), { ...WORLD, world_size: 2 });
  await progress.flush();
  t.strictSame(
    calls.flatMap(([, , metrics]) => metrics.map((metric) => metric.step)),
    Array.from({ length: 450 }, (_, i) => i + 1),
  );
  t.strictSame(
    calls.map(([, , , , options]) => options?.batch),
    [1, 2, 3],
  );
  const [, , metrics, last] = calls.at(-1)!;
  t.match(metrics.at(-1), {
    loss_scale: 1,
    skipped_steps: 0,
    tokens: 450_000,
    tokens_per_second: 2000,
    world_size: 2,
    memory_bytes: 4096,
  });
  t.match(last, { step: 450, tokens: 450_000, tokens_per_second: 2000, padding: 0.25, eta_seconds: 225 });
});

t.test('a batch without a reply is sent again under its number', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => {
    calls.push(call);
    if (calls.length < 3) throw new ZerofleetError('job_store_unavailable', 'away');
    return 1;
  });
  progress.stepped(stepped(1), WORLD);
  await progress.flush();
  t.strictSame(
    calls.map(([, , metrics, , options]) => [metrics[0]!.step, options?.batch]),
    [
      [1, 1],
      [1, 1],
      [1, 1],
    ],
  );
});

t.test('the losses of evaluations are part of their step', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  const evaluated = (name: string, loss: number) => ({ name, loss, tokens: 10, sequences: 2, seconds: 1 });
  progress.stepped(stepped(1), WORLD);
  progress.stepped(stepped(2, { evaluations: [evaluated('validation', 1.5)] }), WORLD);
  const evaluations = [evaluated('validation', Number.NaN), evaluated('code', 2)];
  progress.stepped(stepped(3, { evaluations }), WORLD);
  await progress.flush();
  const losses = calls[0]![2].map((metric) => metric.eval_losses);
  t.strictSame(losses, [undefined, { validation: 1.5 }, { validation: null, code: 2 }]);
});

t.test(
  'an evaluation behind a step writes its metrics again, and the highest reward is the best',
  async (t) => {
    const calls: Parameters<Report>[] = [];
    const grader = { type: 'webhook', name: 'w', webhook: 'wh_1' };
    const train = { objective: { type: 'grpo', grader } } as unknown as NonNullable<Options['train']>;
    const at = new Date().toISOString();
    const stored = [{ seq: 7, position: 'p', kind: 'metric', epoch: 1, step: 2, lr: 0.5, at } as JobMetric];
    const { progress } = reporter(t, async (...call) => calls.push(call), { train, stored });
    progress.stepped(stepped(2), WORLD);
    await progress.evaluated(2, { held_out: 0.5 });
    const written = () => calls.flatMap(([, , metrics]) => metrics);
    t.strictSame(written()[1], { step: 2, lr: 0.5, at, eval_losses: { held_out: 0.5 } }, 'at once');
    progress.stepped(stepped(2), WORLD);
    await progress.evaluated(4, { held_out: 0.25 });
    await progress.flush();
    t.match(written()[2], { step: 2, eval_losses: { held_out: 0.5 } }, 'also when it is run again');
    t.strictSame(calls.at(-1)?.[3]?.evaluations, {
      held_out: { step: 4, loss: 0.25, best_step: 2, best_loss: 0.5 },
    });
  },
);

t.test('the newest and the best evaluation of each dataset are in the progress', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  const newest = () => calls.at(-1)?.[3]?.evaluations;
  const evaluated = async (step: number, losses: Record<string, number>) => {
    const evaluations = Object.entries(losses).map(([name, loss]) => ({
      ...{ name, loss, tokens: 10, sequences: 2, seconds: 1 },
    }));
    progress.stepped(stepped(step, { evaluations }), WORLD);
    await progress.flush();
  };
  await evaluated(1, {});
  t.equal(newest(), undefined);
  await evaluated(2, { validation: 2, code: Number.NaN });
  await evaluated(4, { validation: 1 });
  await evaluated(6, { validation: 1.5, code: 3 });
  await evaluated(7, {});
  const after = {
    validation: { step: 6, loss: 1.5, best_step: 4, best_loss: 1 },
    code: { step: 6, loss: 3, best_step: 6, best_loss: 3 },
  };
  t.strictSame(newest(), after);
  await evaluated(8, { validation: Number.NaN });
  t.match(newest(), { validation: { step: 8, loss: null, best_step: 4, best_loss: 1 } });
});

t.test('another worker continues with the evaluations of the job', async (t) => {
  const calls: Parameters<Report>[] = [];
  const evaluations = { validation: { step: 4, loss: 2, best_step: 2, best_loss: 1 } };
  const { progress } = reporter(t, async (...call) => calls.push(call), { evaluations });
  progress.stepped(stepped(5), WORLD);
  await progress.flush();
  t.same(calls[0]?.[3]?.evaluations, evaluations);
});

t.test('optional metrics appear only where they exist', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  const trustRatios = [{ min: 0.1, median: 1, max: 10 }];
  progress.stepped(stepped(1), WORLD);
  progress.stepped(stepped(2, { aux_loss: 0.25, trust_ratios: trustRatios }), WORLD);
  progress.stepped(stepped(3, { aux_loss: Number.NaN }), WORLD);
  await progress.flush();
  const [plain, full, broken] = calls[0]![2];
  t.notOk('preference' in plain! || 'aux_loss' in plain! || 'trust_ratios' in plain!);
  t.same(plain?.seconds, STEP_SECONDS);
  t.match(full, { aux_loss: 0.25, trust_ratios: trustRatios });
  t.match(broken, { aux_loss: null });
});

t.test('means of preferences are in the metrics and in the progress', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  const preference = {
    reward_chosen: 0,
    reward_rejected: Number.NaN,
    margin: Number.NaN,
    accuracy: 0.5,
    log_prob_chosen: -3,
    log_prob_rejected: null,
  };
  progress.stepped(stepped(1, { preference }), WORLD);
  await progress.flush();
  const wanted = { ...preference, reward_rejected: null, margin: null };
  t.strictSame(calls[0]?.[2][0]?.preference, wanted);
  t.strictSame(calls[0]?.[3]?.preference, wanted);
});

t.test('numbers that JSON cannot represent become null', async (t) => {
  const calls: Parameters<Report>[] = [];
  const { progress } = reporter(t, async (...call) => calls.push(call));
  const seconds = { ...STEP_SECONDS, total: 0 };
  progress.stepped(stepped(1, { loss: Number.NaN, grad_norm: Number.POSITIVE_INFINITY, seconds }), WORLD);
  await progress.flush();
  t.match(calls[0]![2][0], { loss: null, grad_norm: null, tokens_per_second: null });
  t.match(calls[0]![3], { loss: null, tokens_per_second: null, eta_seconds: null });
});

t.test('nothing is written after the lease is lost, and flush returns', async (t) => {
  const { progress, lease } = reporter(t, () => t.fail('must not be written') as never);
  progress.stepped(stepped(1), WORLD);
  lease.lose(new Error('gone'));
  await progress.flush();
  t.pass('flushed');
});
