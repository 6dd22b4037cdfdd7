/**
 * Tests of a save that dies at each of its calls. The next load finds the previous or the new checkpoint, complete, and
 * the next save removes all leftovers.
 */
import t from 'tap';
import { SaveCrashes } from '../../testing/checks/save-crashes.js';
import { end, newest, trainAndSave } from '../../testing/saving-process.js';

const crashes = await SaveCrashes.start(t);

for (const [moment, layer] of [
  ['before', 'stores'],
  ['after', 'stores'],
  ['before', 'changes of the file system'],
] as const) {
  t.test(`killed ${moment} each call to the ${layer}, a save is done or not done`, (t) =>
    crashes.checkEach(t, layer, moment),
  );
}

t.test(
  'killed before each call of two saves, the end leaves the checkpoints that retention keeps',
  async (t) => {
    for (let at = 1; ; at++) {
      const { crash, healthy, job_id } = await crashes.run({
        layer: 'stores',
        at,
        moment: 'before',
        before: 0,
        saves: 2,
      });
      if (!crash.happened) break;
      const call = `call ${at}, ${crash.calls.at(-1)}`;
      while ((await newest(healthy, job_id))?.manifest.step !== 6) await trainAndSave(healthy, job_id, 2);
      t.strictSame(await end(healthy, job_id), { files: 3, steps: [6] }, call);
    }
  },
);
