import t from 'tap';
import { testManifest } from '../../formats/testing/checkpoints.js';
import { initialLossScaler, positionAfterLoad, positionAfterRestore } from './position.js';

const scaler = { scale: 1024, iteration: 12, last_overflow_iteration: 7, hysteresis: 1, skipped_in_a_row: 0 };
const manifest = {
  ...testManifest({ numels: [10], ranks: 1 }),
  step: 12,
  optimizer_steps: 10,
  skipped_steps: 2,
  loss_scaler: { type: 'dynamic' as const, ...scaler },
};
const limits = { max_skipped_steps: 100 };
const dynamic = { ...limits, type: 'dynamic' as const, initial_scale: 65_536, hysteresis: 2 };
const none = { ...limits, type: 'none' as const };
const fresh = {
  scale: 65_536,
  iteration: 0,
  last_overflow_iteration: -1,
  hysteresis: 2,
  skipped_in_a_row: 0,
};

t.test("a job's own checkpoint restores its position", async (t) => {
  t.strictSame(positionAfterLoad(manifest, { own: true, restore: 'full' }, dynamic), {
    step: 12,
    optimizer_steps: 10,
    skipped_steps: 2,
    loss_scaler: scaler,
  });
});

t.test("another job's checkpoint starts a job at its own step 0", async (t) => {
  const start = { step: 0, skipped_steps: 0 };
  for (const restore of ['full', 'weights_16bit'] as const) {
    t.strictSame(positionAfterLoad(manifest, { own: false, restore }, dynamic), {
      ...start,
      optimizer_steps: 10,
      loss_scaler: scaler,
    });
  }
  t.strictSame(positionAfterLoad(manifest, { own: false, restore: 'weights' }, dynamic), {
    ...start,
    optimizer_steps: 0,
    loss_scaler: fresh,
  });
});

t.test('an uploaded optimizer state restores its updates and its dynamic loss scaler', async (t) => {
  const optimizer = { steps: 10, loss_scaler: manifest.loss_scaler };
  const start = { step: 0, skipped_steps: 0, optimizer_steps: 10 };
  t.strictSame(positionAfterRestore(optimizer, dynamic), { ...start, loss_scaler: scaler });
  t.equal(positionAfterRestore(optimizer, none).loss_scaler.scale, 1);
  const without = { steps: 10, loss_scaler: null };
  t.strictSame(positionAfterRestore(without, dynamic), { ...start, loss_scaler: fresh });
});

t.test('a scaler of another type starts fresh', async (t) => {
  const unscaled = { ...manifest, loss_scaler: { ...manifest.loss_scaler, type: 'none' as const, scale: 1 } };
  t.strictSame(positionAfterLoad(unscaled, { own: false, restore: 'full' }, dynamic).loss_scaler, fresh);
  t.equal(positionAfterLoad(manifest, { own: false, restore: 'full' }, none).loss_scaler.scale, 1);
  t.equal(initialLossScaler({ ...limits, type: 'static', initial_scale: 128 }).scale, 128);
});
