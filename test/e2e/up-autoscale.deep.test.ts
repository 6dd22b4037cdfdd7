/** First use of `zerofleet up --autoscale`: a real terminal, with Ctrl-C in the middle of a job. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { Zerofleet } from '../../clients/typescript/index.js';
import { projectRoot } from '../../platform/process/root.js';
import { until } from '../../platform/testing/waiting.js';
import { largerSteps, smallJob } from '../support/specs.js';
import { cleanEnvironment, sampleText } from '../support/stack.js';
import { Terminal, whyNoTerminal } from '../support/terminal.js';

t.setTimeout(600_000);

/** All processes started from a terminal of this test. */
async function processesOf(dir: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '');
      return (await Promise.all([read('cmdline'), read('environ')])).join().includes(dir) ? [pid] : [];
    }),
  );
  return found.flat();
}

t.test(
  'workers start and stop with jobs, and Ctrl-C loses nothing',
  { skip: whyNoTerminal() ?? false },
  async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'zf-terminal-'));
    t.teardown(() => rmSync(dir, { recursive: true, force: true }));
    mkdirSync(join(dir, 'bin'));
    symlinkSync(join(projectRoot(), 'tools', 'zerofleet.mjs'), join(dir, 'bin', 'zerofleet'));
    const pools = [{ pool: 'default', types: [{ name: 'local', slots: 2, max: 2 }], idle_seconds: 3 }];
    const env = {
      ...cleanEnvironment(),
      PATH: `${join(dir, 'bin')}:${process.env.PATH}`,
      ZEROFLEET_PORT: '0',
      ZEROFLEET_THREADS_PER_RANK: '1',
      ZEROFLEET_AUTOSCALE_POOLS: JSON.stringify(pools),
      ZEROFLEET_AUTOSCALE_INTERVAL_SECONDS: '1',
    };
    const terminal = await Terminal.open(t, { name: 'up-autoscale', dir, env });
    /** Starts it, and a client of it. */
    const up = async () => {
      terminal.type('zerofleet up --autoscale');
      const shown = await terminal.see(/ready http:\/\/127\.0\.0\.1:\d+\n/);
      t.match(shown, /no worker runs yet/);
      const baseUrl = /ready (http\S+)\n/.exec(shown)?.[1] ?? '';
      const apiKey = readFileSync(join(dir, '.zerofleet', 'api-key'), 'utf8').trim();
      return new Zerofleet({ baseUrl, apiKey });
    };

    const before = await up();
    t.same(await before.workers(), []);
    const dataset = (await before.datasets.create('text', sampleText())).id;
    const spec = largerSteps(smallJob({ name: 'first', dataset, steps: 120, ranks: 2, every_steps: 100 }));
    const { id } = await before.jobs.create(spec);
    await until(async () => (await before.jobs.get(id)).progress.step > 2);
    t.equal((await before.workers()).length, 1, 'one has two slots');
    t.match(await terminal.interrupt(), /\nstopping; running jobs are saved/);

    const after = await up();
    const { latest_checkpoint } = await after.jobs.get(id);
    t.ok((latest_checkpoint?.step ?? 0) > 2, 'its progress was saved');
    await until(async () => (await after.jobs.get(id)).state === 'succeeded');
    await until(async () => (await after.workers()).length === 0);
    t.notMatch(terminal.record(), /"level"|^\s+at /m, 'no stack traces were printed');

    t.comment('closing the window also ends all processes');
    t.ok((await processesOf(dir)).length >= 3);
    terminal.close();
    await until(async () => (await processesOf(dir)).length === 0);
  },
);
