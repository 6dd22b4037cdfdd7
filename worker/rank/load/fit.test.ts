import t from 'tap';
import { ADAM_STATES, testManifest, testParams } from '../../../formats/testing/checkpoints.js';
import { checkFits, type TrainedState } from './fit.js';

const SHAPE = { numels: [100, 7], ranks: 2 };
const manifest = testManifest(SHAPE);
const state: TrainedState = {
  params: testParams(SHAPE),
  optimizer: 'adamw',
  states: ADAM_STATES,
  num_base: 2,
};
const renamed = (from: string, to: Partial<TrainedState['params'][number]>): TrainedState => ({
  ...state,
  params: state.params.map((param) => (param.name === from ? { ...param, ...to } : param)),
});

function refused(other: TrainedState, message: RegExp) {
  return [() => checkFits(manifest, other, 'full'), { code: 'checkpoint_mismatch', message }] as const;
}

t.test('the same training fits, and its weights fit another one', async (t) => {
  for (const restore of ['full', 'weights', 'weights_16bit'] as const) {
    t.doesNotThrow(() => checkFits(manifest, state, restore));
    // Parameters are matched by name, not by order.
    t.doesNotThrow(() => checkFits(manifest, { ...state, params: [...state.params].reverse() }, restore));
  }
  const lion: TrainedState = {
    ...renamed('p1', { frozen: true }),
    optimizer: 'lion',
    states: ['master', 'exp_avg'],
  };
  t.doesNotThrow(() => checkFits(manifest, lion, 'weights'));
  t.throws(() => checkFits(manifest, lion, 'weights_16bit'), { code: 'checkpoint_mismatch' });
});

t.test('other parameters fit no restore', async (t) => {
  const others: [TrainedState, RegExp][] = [
    [renamed('p1', { name: 'q' }), /has no parameter q/],
    [renamed('p1', { shape: [7, 1] }), /p1 has shape \[7\] there and \[7,1\] here/],
    [{ ...state, params: state.params.slice(0, 1) }, /its parameter p1 does not exist here/],
  ];
  for (const [other, message] of others) {
    t.throws(...refused(other, message));
    t.throws(() => checkFits(manifest, other, 'weights'), { code: 'checkpoint_mismatch', message });
  }
});

t.test('a full restore needs the same optimizer and the same frozen parameters', async (t) => {
  t.throws(...refused({ ...state, optimizer: 'lamb' }, /trained with adamw .*, the job has lamb/));
  t.throws(
    ...refused({ ...state, states: ['master'] }, /exp_avg, exp_avg_sq\), the job has adamw \(master\)/),
  );
  t.throws(...refused(renamed('p0', { frozen: true }), /p0 is trained there and is frozen here/));
  const frozen = testManifest({ ...SHAPE, frozen: [1] });
  t.throws(() => checkFits(frozen, state, 'full'), { message: /p1 is frozen there and is trained here/ });
});
