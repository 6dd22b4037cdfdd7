import { readdir, readFile } from 'node:fs/promises';
import { presets } from '../job-document/index.js';
import { programPath } from '../platform/process/programs.js';
import { DEFAULT_TIMING } from '../worker/shared/timing.js';
import { Fleet } from '../worker/testing/fleet.js';
import { median } from './report.js';

const programs = {
  rank: programPath('worker/rank/main'),
  task: programPath('worker/tasks/main'),
};
const TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(2000);

/** Kills a rank of a running llama-tiny job on two ranks and waits for the first new step. */
export async function measureRecovery(repeats: number) {
  const fleet = await Fleet.start({ programs, text: TEXT });
  try {
    // The agent's production intervals.
    await fleet.agent(2, DEFAULT_TIMING);
    const id = await fleet.submit({
      config: presets['llama-tiny'],
      steps: 1_000_000,
      every_steps: 2,
      ranks: 2,
      max_errors: 1000,
    });
    const seconds: number[] = [];
    for (let repetition = 0; repetition < repeats; repetition++) {
      const before = await fleet.until(
        id,
        (job) => job.state === 'running' && job.latest_checkpoint !== null,
      );
      const recoveries = before.state_history.filter(({ state }) => state === 'recovering').length;
      const killedAt = Date.now();
      process.kill(await childOf(process.pid, programs.rank), 'SIGKILL');
      const after = await fleet.until(
        id,
        ({ state_history }) =>
          state_history.filter(({ state }) => state === 'recovering').length > recoveries,
      );
      seconds.push((await firstStepAfter(fleet, id, after.state_history.at(-1)?.at ?? '')) - killedAt);
    }
    await fleet.store.requestCancel(id);
    await fleet.untilState(id, 'cancelled');
    return {
      config: 'llama-tiny',
      ranks: 2,
      sigkill_to_step_ms: Math.round(median(seconds)),
      all: seconds,
    };
  } finally {
    await fleet.close();
  }
}

/** Time of the first step after `recovering_at` from its metric, in ms since the epoch. */
async function firstStepAfter(fleet: Fleet, id: string, recoveringAt: string): Promise<number> {
  for (;;) {
    const { progress } = await fleet.until(id, (job) => job.state === 'running');
    const entries = await fleet.store.readStream(id, null, 100_000, ['metric']);
    const first = entries.find(({ at }) => at > recoveringAt);
    if (first) return Date.parse(first.at);
    await fleet.until(id, (job) => job.progress.step !== progress.step || job.state !== 'running');
  }
}

/** Process id of a child of `parent` that runs `program`, from /proc. */
async function childOf(parent: number, program: string): Promise<number> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [stat, command] = await Promise.all(
      ['stat', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    );
    // The second field is the name in parentheses, which may contain spaces; the parent is two fields after it.
    const ppid = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    if (ppid === parent && command?.includes(program)) return Number(pid);
  }
  throw new Error(`no child runs ${program}`);
}
