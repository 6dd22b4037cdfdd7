import type { Architecture } from '../../contracts/architecture.js';
import type { FieldError, ResolvedModelConfig } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf, familyOf } from './families/families.js';
import { largestDivisor } from './leaves.js';

/** Checks the rules between the sizes of a model; pointers have the names of its family. */
export function checkShapes(config: ResolvedModelConfig): FieldError[] {
  const architecture = architectureOf(config);
  const { fieldNames } = familyOf(config);
  const nameOf = (field: keyof Architecture) => fieldNames[field] ?? field;
  const { head_dim, num_attention_heads, num_key_value_heads } = architecture;
  const { num_experts, experts_per_token } = architecture;
  const errors: FieldError[] = [];
  if (head_dim % 2 !== 0)
    errors.push(
      fieldError(
        `/${nameOf('head_dim')}`,
        'head_dim_odd',
        `the width of a head, ${head_dim}, is odd; it must be even`,
        String(head_dim + 1),
      ),
    );
  for (const field of ['intermediate_size', 'shared_expert_size'] as const) {
    const [name, size] = [nameOf(field), architecture[field]];
    if (size % 2 !== 0)
      errors.push(
        fieldError(
          `/${name}`,
          'intermediate_size_odd',
          `${name} ${size} is odd; it must be even`,
          String(size + 1),
        ),
      );
  }
  if (num_attention_heads % num_key_value_heads !== 0)
    errors.push(
      fieldError(
        `/${nameOf('num_key_value_heads')}`,
        'heads_not_divisible',
        `num_attention_heads ${num_attention_heads} is not a multiple of num_key_value_heads ${num_key_value_heads}`,
        String(largestDivisor(num_attention_heads, num_key_value_heads)),
      ),
    );
  if (experts_per_token > num_experts)
    errors.push(
      fieldError(
        `/${nameOf('experts_per_token')}`,
        'experts_per_token_exceeds_experts',
        `${nameOf('experts_per_token')} ${experts_per_token} is greater than ${nameOf('num_experts')} ${num_experts}`,
        String(num_experts),
      ),
    );
  return errors;
}
