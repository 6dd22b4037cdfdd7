/** The whole worker with the real native core: what the other tests show with a core of their own, once with this one. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { projectRoot } from '../../platform/root.js';
import { parseSafetensorsHeader } from '../../platform/safetensors/read-header.js';
import { Fleet } from '../testing/fleet.js';

const programs = {
  rank: fileURLToPath(new URL('../rank/main.js', import.meta.url)),
  task: fileURLToPath(new URL('../tasks/main.js', import.meta.url)),
};
const built = existsSync(join(projectRoot(), 'native', 'build', 'zerofleet.node'));
const options = built ? {} : { skip: 'the native core is not built' };
const STEPS = 400;

t.test(
  'paused, resumed on other worlds and with a rank killed, training ends with the same bits',
  options,
  async (t) => {
    const fleet = await Fleet.start({
      programs,
      text: 'The quick brown fox jumps over the lazy dog. '.repeat(200),
    });
    t.teardown(() => fleet.close());
    await fleet.agent();

    const straight = await fleet.submit({ steps: STEPS, every_steps: 1000, ranks: 1 });
    const expected = await fleet.untilState(straight, 'succeeded');
    t.match(expected.export?.state_digest, /^[0-9a-f]{32}$/);
    const losses = (await fleet.store.readStream(straight, 0, 1000, ['metric'])).flatMap((entry) =>
      entry.kind === 'metric' ? [entry.loss ?? Number.NaN] : [],
    );
    t.ok(losses[STEPS - 1]! < losses[0]!, 'it learns');

    const broken = await fleet.submit({ steps: STEPS, every_steps: 4, ranks: 2 });
    for (const [step, ranks] of [
      [10, 3],
      [25, 1],
    ] as const) {
      // A pause may come later than at its step: the next one is then reached before there are ranks again.
      await fleet.until(broken, (job) => job.state === 'running' && job.progress.step >= step);
      if (step === 25) {
        process.kill(await childOf(process.pid, programs.rank), 'SIGKILL');
        await fleet.until(broken, (job) => job.state_history.some(({ state }) => state === 'recovering'));
        await fleet.untilState(broken, 'running');
      }
      await fleet.store.requestPause(broken);
      const paused = await fleet.untilState(broken, 'paused');
      t.equal(paused.latest_checkpoint?.step, paused.progress.step);
      await fleet.store.resumeJob(broken, { ranks });
    }
    const job = await fleet.untilState(broken, 'succeeded');
    t.equal(job.export?.state_digest, expected.export?.state_digest);
    t.strictSame(
      job.export?.files.map(({ sha256 }) => sha256),
      expected.export?.files.map(({ sha256 }) => sha256),
      'the exported files are the same bytes',
    );

    const weights = await fleet.objects.get(`${job.export?.prefix}/model.safetensors`);
    const header = parseSafetensorsHeader(weights);
    t.match(
      header.tensors.find(({ name }) => name === 'model.layers.1.self_attn.k_proj.weight'),
      { dtype: 'BF16', shape: [16, 32] },
    );
    t.equal(header.bytes + (header.tensors.at(-1)?.end ?? 0), weights.length);
  },
);

/** The id of some child of `parent` that runs `program`, as the kernel tells it. */
async function childOf(parent: number, program: string): Promise<number> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const [stat, command] = await Promise.all(
      ['stat', 'cmdline'].map((file) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')),
    );
    // The second field is the name in parentheses, and may hold spaces; the parent comes two fields behind it.
    const ppid = Number(stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    if (ppid === parent && command?.includes(program)) return Number(pid);
  }
  throw new Error(`no child runs ${program}`);
}
