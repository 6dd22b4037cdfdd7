import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Rollout } from '../../../../contracts/index.js';
import { rewardsKey } from '../../../../formats/checkpoint/layout.js';
import { getIfExists } from '../../../../platform/object-store/common/get-if-exists.js';
import { mixedSeed } from '../../../../platform/seeds.js';
import { DrivenLog, type DrivenOptions } from './testing/driven-log.js';

const JOB = 'job_01J00000000000000000000000';

async function recorded({ objects }: DrivenLog, number: number): Promise<Rollout | null> {
  const found = await getIfExists(objects, rewardsKey(JOB, number));
  return found && JSON.parse(Buffer.from(found).toString('utf8'));
}

async function logOf(t: Test, options: DrivenOptions = {}): Promise<DrivenLog> {
  const log = await DrivenLog.open(options);
  t.teardown(() => log.close());
  return log;
}

t.test('a rollout, its passes and its update, until the last step', async (t) => {
  const log = await logOf(t);
  const { driver, ended } = log.drive();
  await ended;
  const calls = await log.calls();
  const rollout = ['sample', 'forward_backward', 'forward_backward', 'optim_step'];
  t.same(
    calls.map(({ type }) => type),
    [...rollout, ...rollout, ...rollout, ...rollout, 'finish'],
  );
  const [sample, pass, rest, update] = calls;
  t.match(sample, { n: 3, max_tokens: 4, seed: mixedSeed(1, 0), stop_tokens: [] });
  t.match(calls[4], { seed: mixedSeed(1, 1) }, 'no two rollouts have one seed');
  t.match(pass, { loss: { type: 'ppo', clip_low: 0.2, clip_high: 0.2 } });
  t.same(
    [pass, rest].map((call) => call && 'rows' in call && call.rows.length),
    [4, 2],
  );
  t.match(update, { lr: 0.001, gradient_clipping: 1 });
  t.equal(log.graded.length, 4 * 6);
  t.match(await recorded(log, 1), {
    step: 1,
    call: 1,
    groups: [{ samples: [{ tokens: 2, truncated: true }] }, {}],
  });
  t.match(driver.metricsOf(4), { tokens: 2, truncated_share: 1, entropy: 1.5, failed_share: 0 });
});

t.test('every epoch reads each prompt once, in an order of its own', async (t) => {
  const log = await logOf(t, { steps: 5 });
  await log.drive().ended;
  const prompts = (await log.calls()).flatMap((call) => ('prompts' in call ? call.prompts : []));
  const texts = prompts.map((tokens) => Buffer.from(tokens).toString());
  const sorted = ['0=', '1=', '2=', '3=', '4='];
  t.same(texts.slice(0, 5).sort(), sorted);
  t.same(texts.slice(5).sort(), sorted);
  t.notSame(texts.slice(0, 5), texts.slice(5));
});

t.test(
  'a driver that begins again asks no grader for what is recorded, and writes the same log',
  async (t) => {
    const whole = await logOf(t);
    await whole.drive().ended;
    const log = await logOf(t);
    log.onAppend = (number) => {
      if (number === 7) throw new Error('ended');
    };
    const first = log.drive();
    await t.rejects(first.ended, /ended/);
    await first.driver.close();
    t.equal(log.graded.length, 12);
    log.onAppend = () => undefined;
    const second = log.drive();
    await second.ended;
    t.equal(log.graded.length, 24, 'the second rollout was recorded');
    t.same(await log.calls(), await whole.calls());
  },
);

t.test('metrics of steps that are run again are read from their records', async (t) => {
  const log = await logOf(t);
  const first = log.drive();
  await first.ended;
  const metrics = first.driver.metricsOf(4);
  const { driver } = log.drive();
  await driver.prepare(3, new AbortController().signal);
  const interrupted = log.drive().driver.prepare(3, AbortSignal.abort(new Error('paused')));
  await t.rejects(interrupted, { message: 'paused' });
  t.same(driver.metricsOf(4), metrics);
  t.equal(driver.metricsOf(5), null);
});

t.test('several steps use the samples of a rollout', async (t) => {
  const log = await logOf(t, { steps: 3, objective: { num_iterations: 2 } });
  await log.drive().ended;
  const calls = await log.calls();
  t.equal(calls.filter(({ type }) => type === 'sample').length, 2);
  t.same(calls[4], calls[1], 'the same pass again');
  t.equal(calls.filter(({ type }) => type === 'optim_step').length, 3);
});

t.test('a driver that begins after the end of the log writes nothing', async (t) => {
  const log = await logOf(t, { steps: 1 });
  await log.drive().ended;
  log.onAppend = (number) => t.fail(`call ${number} is written`);
  log.drive();
  await setImmediate();
});

t.test('an evaluation answers the first prompts, and its rewards are asked for once', async (t) => {
  const log = await logOf(t, { evaluated: 2, steps: 3, objective: { evaluation_prompts: 3 } });
  log.onAppend = (number) => {
    if (number === 11) throw new Error('ended');
  };
  const first = log.drive();
  await t.rejects(first.ended, /ended/);
  await first.driver.close();
  const graded = log.graded.length;
  t.equal(graded, 2 * 6 + 3);
  log.onAppend = () => undefined;
  const { driver, ended } = log.drive();
  t.same(await driver.figuresAt(1), {}, 'the step has none');
  await ended;
  t.equal(log.graded.length, graded + 6 + 3);
  const calls = await log.calls();
  t.same(
    calls.slice(8, 10).map(({ type }) => type),
    ['sample', 'save_state'],
  );
  t.match(calls[8], { n: 1, temperature: 0, max_tokens: 4 });
  t.same(
    calls[8] && 'prompts' in calls[8] && calls[8].prompts.map((tokens) => Buffer.from(tokens).toString()),
    ['0=', '1=', '2='],
  );
  const record = await recorded(log, 9);
  t.match(record, { step: 2, call: 9, groups: [{ samples: { length: 1 } }, {}, {}] });
  const rewards = record?.groups.flatMap(({ samples }) => samples.map(({ reward }) => reward)) ?? [];
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / 3;
  t.same(log.figures.at(0), { step: 2, figures: { again: mean } });
  t.same(await driver.figuresAt(3), log.figures.at(-1)?.figures);
  const { driver: later } = log.drive();
  for (const { step, figures } of log.figures)
    t.same(await later.figuresAt(step), figures, 'a driver that begins behind the evaluation reads them');
  t.match(log.figures, [{ step: 2 }, { step: 3 }]);
});

const FAULT = { grader: 'exact', code: 'python_failed', message: 'division by zero' } as const;

t.test('a failed grade is recorded, and too many end the job', async (t) => {
  const fails = (share: number) => {
    let count = 0;
    const grade = () => {
      count += 1;
      return count % 6 < share * 6 ? { reward: 0, errors: [FAULT] } : {};
    };
    return logOf(t, { steps: 1, grade, objective: { max_failed_share: 0.5 } });
  };
  const some = await fails(0.5);
  await some.drive().ended;
  const samples = (await recorded(some, 1))?.groups.flatMap((group) => group.samples) ?? [];
  t.same(
    samples.flatMap(({ errors }) => errors),
    [FAULT, FAULT, FAULT],
  );
  const all = await fails(1);
  await t.rejects(all.drive().ended, { code: 'grading_failed', message: /6 of 6 .*division by zero/ });
  t.equal(await recorded(all, 1), null, 'another driver asks again');
});

t.test('a prompt that is too long ends the job before its first call', async (t) => {
  const lines = [{ prompt: 'a' }, { prompt: 'a'.repeat(13) }];
  const log = await logOf(t, { lines });
  await t.rejects(log.drive().ended, { code: 'prompt_too_long', message: /^line 2: / });
  t.equal(log.appended, 0);
});
