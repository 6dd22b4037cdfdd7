/** Rows of logits at once: the formulas of native/model/transformer/loss_head.cc. */
import { chunkRows, ROW_CHUNK, type Sizes } from './sizes.js';

/** Maximum of fp32 logits, and of their gradients, that exist at once (kernels/backends). */
const LOGIT_LIMITS = {
  cpu: { logits: 16 * 2 ** 20, gradients: 64 * 2 ** 20 },
  cuda: { logits: 2 ** 30, gradients: 0 },
};

/** Returns the rows of logits and of their gradients that exist at once. */
export function logitRows({ rows, element, model, machine }: Sizes): { logits: number; gradients: number } {
  const limits = LOGIT_LIMITS[machine.device];
  const chunk = (count: number, bytes: number, elementBytes: number) => {
    const fitting = Math.floor(bytes / (model.vocab_size * elementBytes) / ROW_CHUNK) * ROW_CHUNK;
    return chunkRows(count, Math.max(ROW_CHUNK, fitting));
  };
  const gradients = Math.max(chunk(rows, limits.gradients, element), chunk(rows, limits.logits, 4));
  return { logits: chunk(gradients, limits.logits, 4), gradients };
}
