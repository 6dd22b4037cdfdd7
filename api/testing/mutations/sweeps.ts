/** Mutating requests for sweeps. */
import type { Sweep, SweepState } from '../../../contracts/index.js';
import { smallSweep, type TestStack } from '../stack.js';
import { type Mutation, numOf, TEXT } from './mutation.js';

const sweepSpec = async (stack: TestStack) => smallSweep((await stack.upload(TEXT)).id);

async function sweepOf(stack: TestStack): Promise<string> {
  const payload = await sweepSpec(stack);
  return (await stack.request({ method: 'POST', url: '/v1/sweeps', payload })).json<Sweep>().id;
}

const post = (stack: TestStack, id: string, action: string) =>
  stack.request({ method: 'POST', url: `/v1/sweeps/${id}/${action}` });

/** A request that leads to a state. */
const changing = (action: string, state: SweepState, ...before: string[]): Mutation => ({
  status: 202,
  prepare: async (stack) => {
    const id = await sweepOf(stack);
    for (const earlier of before) await post(stack, id, earlier);
    return {
      request: { method: 'POST', url: `/v1/sweeps/${id}/${action}` },
      effects: async () => Number((await stack.store.getSweep('default', id))?.sweep.state === state),
    };
  },
});

export const SWEEP_MUTATIONS = {
  createSweep: {
    status: 201,
    prepare: async (stack) => ({
      request: { method: 'POST', url: '/v1/sweeps', payload: await sweepSpec(stack) },
      effects: numOf(stack, '/v1/sweeps'),
    }),
  },
  pauseSweep: changing('pause', 'paused'),
  resumeSweep: changing('resume', 'running', 'pause'),
  cancelSweep: changing('cancel', 'cancelled'),
  deleteSweep: {
    status: 204,
    prepare: async (stack) => {
      const id = await sweepOf(stack);
      await post(stack, id, 'cancel');
      return { request: { method: 'DELETE', url: `/v1/sweeps/${id}` }, effects: numOf(stack, '/v1/sweeps') };
    },
  },
} satisfies Record<string, Mutation>;
