/** W&B's own client continues the run of a job, and the job goes on after it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { testPython } from '../../platform/testing/python.js';
import { claimed, setUp, stepsTo } from './testing/forwarding.js';
import { WANDB } from './testing/kinds.js';
import { rowsOf, type StoredWandbRun, summaryOf } from './testing/wandb.js';

const { program, missing } = testPython('wandb');

const CLIENT = `
import sys, wandb
run = wandb.init(entity="team", project="tests", id=sys.argv[1], resume="must")
print(run.config["train"]["optimizer"]["type"], run.summary["loss"])
run.log({"test_accuracy": 0.75, "odd": float("nan")})
run.finish()
`;

/** Runs the client, and returns what it prints. */
async function runClient(dir: string, url: string, id: string): Promise<string> {
  const settings = {
    BASE_URL: url,
    API_KEY: 'f'.repeat(40),
    DIR: dir,
    SILENT: 'true',
    CONSOLE: 'off',
  };
  const privacy = {
    ERROR_REPORTING: 'false',
    DISABLE_CODE: 'true',
    DISABLE_GIT: 'true',
    X_DISABLE_STATS: 'true',
  };
  const named = Object.entries({ ...settings, ...privacy }).map(([name, value]) => [`WANDB_${name}`, value]);
  const env = { ...process.env, ...Object.fromEntries(named) };
  const child = spawn(program, ['-c', CLIENT, id], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
    });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(texts.stderr);
  return texts.stdout.trim();
}

t.test(
  'the client of W&B continues the run of a job',
  { skip: missing ?? false, timeout: 600_000 },
  async (t) => {
    const { store, tracker, createJob, startForwarding } = await setUp(t, WANDB);
    const job = await createJob({ entity: 'team' });
    startForwarding();
    const first = await claimed(store, job.id);
    await first.train(1, 20);
    await store.finishJob(job.id, first.execution, 'failed', { reason: 'test' });
    await tracker.until(() => tracker.store.seen()[0]?.status === 'FAILED');
    const [run] = tracker.store.runs as [StoredWandbRun];
    const { loss } = summaryOf(run);

    const printed = await runClient(t.testdir(), tracker.url.replace(/\/$/, ''), job.id);
    const [optimizer, known] = printed.split('\n').at(-1)?.split(' ') ?? [];
    t.same([optimizer, Number(known)], ['adamw', loss]);
    t.same(
      rowsOf(run).map(({ _step }) => _step),
      stepsTo(21),
    );
    t.match(rowsOf(run)[20], { test_accuracy: 0.75, odd: null });
    t.match(summaryOf(run), { loss, test_accuracy: 0.75 });
    t.match(run.config, {
      model: { value: { preset: 'llama-tiny' } },
      zerofleet: { value: { job_id: job.id } },
    });
    t.equal(run.exitcode, 0);
    t.equal(tracker.store.runs.length, 1);

    await store.retryJob(job.id);
    const second = await claimed(store, job.id, 2);
    await second.train(16, 25);
    await store.finishJob(job.id, second.execution, 'succeeded');
    await tracker.until(
      () => 'zerofleet.state' in summaryOf(run) && run.exitcode === 0 && rowsOf(run).length === 26,
    );
    t.same(tracker.store.seen()[0]?.steps, stepsTo(25), 'each step of the job once');
    t.match(rowsOf(run)[20], { test_accuracy: 0.75 }, 'the line of the client is where it was');
    t.equal(tracker.store.runs.length, 1);
  },
);
