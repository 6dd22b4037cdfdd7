import type { Architecture } from '../../../contracts/architecture.js';
import { frozen } from '../../../contracts/frozen.js';
import type { ResolvedModelConfig } from '../../../contracts/index.js';
import type { ParamNames } from '../parts.js';
import type { Family, ModelType } from './family.js';
import { GEMMA2 } from './gemma2.js';
import { GEMMA3 } from './gemma3.js';
import { GLM } from './glm.js';
import { GLM4 } from './glm4.js';
import { GPT_NEOX } from './gpt-neox.js';
import { GPT2 } from './gpt2.js';
import { GRANITE } from './granite.js';
import { LLAMA } from './llama.js';
import { MISTRAL } from './mistral.js';
import { MIXTRAL } from './mixtral.js';
import { OLMO2 } from './olmo2.js';
import { OLMO3 } from './olmo3.js';
import { PHI3 } from './phi3.js';
import { QWEN2 } from './qwen2.js';
import { QWEN2_MOE } from './qwen2-moe.js';
import { QWEN3 } from './qwen3.js';
import { QWEN3_MOE } from './qwen3-moe.js';
import { SMOLLM3 } from './smollm3.js';

export type { ModelType };

type Families = { readonly [Type in ModelType]: Family<Type> };

export const FAMILIES: Families = {
  gpt2: GPT2,
  llama: LLAMA,
  mistral: MISTRAL,
  qwen2: QWEN2,
  qwen3: QWEN3,
  mixtral: MIXTRAL,
  smollm3: SMOLLM3,
  granite: GRANITE,
  olmo2: OLMO2,
  olmo3: OLMO3,
  qwen3_moe: QWEN3_MOE,
  gemma3_text: GEMMA3,
  gemma2: GEMMA2,
  phi3: PHI3,
  glm4: GLM4,
  gpt_neox: GPT_NEOX,
  glm: GLM,
  qwen2_moe: QWEN2_MOE,
};

export const MODEL_TYPES = Object.keys(FAMILIES) as ModelType[];

/**
 * Returns the family of a configuration. It accepts only configurations of its own type, such as this one.
 */
export function familyOf({ model_type }: Pick<ResolvedModelConfig, 'model_type'>): Family {
  return FAMILIES[model_type] as Family;
}

/** Of configurations that cannot change, such as those of importConfig(): a request needs them often. */
const architectures = new WeakMap<ResolvedModelConfig, Architecture>();

export function architectureOf(config: ResolvedModelConfig): Architecture {
  const known = architectures.get(config);
  if (known !== undefined) return known;
  const { params, architecture } = familyOf(config);
  const made = frozen({ ...architecture(config), naming: params.naming });
  if (Object.isFrozen(config)) architectures.set(config, made);
  return made;
}

const NAMINGS = new Map(Object.values(FAMILIES).map(({ params }) => [params.naming, params]));

/** All names of parameters; several families may have the same. */
export const PARAM_NAMES: readonly ParamNames[] = [...NAMINGS.values()];

export function paramNamesOf({ naming }: Pick<Architecture, 'naming'>): ParamNames {
  const names = NAMINGS.get(naming);
  if (names === undefined) throw new Error(`no family names its parameters as ${naming}`);
  return names;
}
