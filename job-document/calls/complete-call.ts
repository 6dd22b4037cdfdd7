import type { Call, PassLoss, ResolvedJobSpec, StoredCall } from '../../contracts/index.js';
import { baseFault } from '../common/base-fault.js';
import { defaultsOf, filledByType } from '../common/defaults.js';
import { architectureOf } from '../model/families/families.js';

type StoredUpdate = Extract<StoredCall, { type: 'optim_step' }>;

/** What the document of a session says about its calls. */
export interface CallBounds {
  vocab_size: number;
  sequence_length: number;
  global_batch_size: number;
  micro_batch_size: number;
  /** Why there is no base for a penalty; null if there is one. */
  base_fault: ReturnType<typeof baseFault>;
  /** The fields that an `optim_step` may leave out. */
  update: Omit<StoredUpdate, 'type'>;
}

export function callBounds({ model, train }: Pick<ResolvedJobSpec, 'model' | 'train'>): CallBounds {
  const { sequence_length, global_batch_size, micro_batch_size, gradient_clipping } = train;
  const { lr, betas, eps, weight_decay } = train.optimizer;
  return {
    vocab_size: architectureOf(model.config).vocab_size,
    sequence_length,
    global_batch_size,
    micro_batch_size,
    base_fault: baseFault(train.adapter),
    // A session has adamw, which has all of them.
    update: { lr, betas, eps, weight_decay, gradient_clipping } as CallBounds['update'],
  };
}

/** Returns the call with every field, as the log has it; the caller that stores a `load_state` sets its prefix. */
export function completeCall(call: Call, { update }: Pick<CallBounds, 'update'>): StoredCall {
  switch (call.type) {
    case 'forward_backward':
    case 'forward':
      return { ...call, loss: filledByType<PassLoss>('PassLoss', call.loss) };
    case 'optim_step':
      return { ...update, ...call };
    case 'sample':
      return { ...defaultsOf('SampleCall'), ...call };
    case 'load_state':
      return { ...defaultsOf('LoadStateCall'), ...call, prefix: '' };
    default:
      return call;
  }
}
