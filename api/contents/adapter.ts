/** Adapter folders as PEFT writes them. */
import type { Architecture } from '../../contracts/architecture.js';
import { type Model, ZerofleetError } from '../../contracts/index.js';
import { ADAPTER_CONFIG_FILE } from '../../formats/models/documents.js';
import { paramOfPeft } from '../../formats/models/peft-names.js';
import type { HeaderTensor, SafetensorsHeader } from '../../formats/safetensors/header.js';
import {
  architectureOf,
  isNamed,
  layerModules,
  modelParams,
  moduleOf,
  modules,
  tiedHead,
  trainedArchitecture,
} from '../../job-document/index.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import { importedConfig, type ModelShape } from './config.js';

type Adapter = NonNullable<Model['adapter']>;

/** Fields of PEFT's LoraConfig that zerofleet has as well. The tensors say what is targeted. */
const PeftConfig = Type.Object({
  peft_type: Type.Literal('LORA'),
  r: Type.Integer({ minimum: 1, maximum: 512 }),
  lora_alpha: Type.Number({ exclusiveMinimum: 0, maximum: 65536 }),
  lora_dropout: Type.Optional(Type.Number({ minimum: 0, exclusiveMaximum: 1 })),
  use_rslora: Type.Optional(Type.Boolean()),
  use_dora: Type.Optional(Type.Boolean()),
  ensure_weight_tying: Type.Optional(Type.Boolean()),
});
const check = new Check(PeftConfig, { every: true });

/** Further fields that may be on: the tensors say what is targeted, and the rest is not about the computation. */
const WITHOUT_EFFECT = new Set([
  'auto_mapping',
  'exclude_modules',
  'fan_in_fan_out',
  'inference_mode',
  'modules_to_save',
  'target_modules',
]);

/** Initial values that come with other weights of the base: such an adapter is not over the base. */
const CHANGES_BASE = /^(pissa|olora|corda|loftq|lora_ga)/;

/**
 * Returns whether a field changes what an adapter computes in a way that has no equivalent. Numbers and names of a
 * method have no effect while its switch, or what it is about, is off.
 */
function isForeign(field: string, value: unknown): boolean {
  if (field === 'bias') return value !== 'none';
  if (field === 'init_lora_weights') return CHANGES_BASE.test(String(value));
  if (field in PeftConfig.properties || WITHOUT_EFFECT.has(field)) return false;
  return value === true || (typeof value === 'object' && value !== null && Object.keys(value).length > 0);
}

const FACTOR = /\.lora_(A|B|magnitude_vector)\.weight$/;

/** An adapter with its file under zerofleet's names, and the parameters that the file must have. */
interface PeftAdapter {
  adapter: Adapter;
  header: SafetensorsHeader;
  shape: ModelShape;
}

/**
 * Reads an adapter over the model of `config`. Its modules follow from the tensors: the configuration may name them by
 * a pattern, and means by `norm` every module whose name ends so.
 * @param document `adapter_config.json`
 * @param header that of `adapter_model.safetensors`
 * @throws ZerofleetError `model_config_invalid`
 */
export function readAdapter(
  config: Record<string, unknown>,
  document: Record<string, unknown>,
  header: SafetensorsHeader,
): PeftAdapter {
  const peft = checked(document);
  const model = importedConfig(config);
  const architecture = architectureOf(model);
  const tensors = tiedTensors(
    header.tensors.map((tensor) => ({ ...tensor, name: paramOfPeft(tensor.name) })),
    architecture,
    peft,
  );
  const adapted = new Set<string>();
  const whole = new Set<string>();
  for (const { name } of tensors) {
    const [module, set] = FACTOR.test(name) ? [name.replace(FACTOR, ''), adapted] : [moduleOf(name), whole];
    set.add(module.replace(/\.\d+(?=\.)/g, '.{}'));
  }
  if (adapted.size === 0) throw invalid('no tensor of the weights is a factor of an adapter');
  const adapter: Adapter = {
    type: peft.use_dora ? 'dora' : 'lora',
    rank: peft.r,
    alpha: peft.lora_alpha,
    rank_stabilized: peft.use_rslora ?? false,
    dropout: peft.lora_dropout ?? 0,
    target_modules: shortNames(layerModules(architecture), adapted),
    modules_to_save: shortNames(modules(architecture), whole),
    init: 'kaiming_uniform',
  };
  const params = modelParams(trainedArchitecture({ model: { config: model }, train: { adapter } }));
  return {
    adapter,
    header: { ...header, tensors },
    shape: {
      model_type: model.model_type,
      params: params.filter(({ frozen }) => !frozen),
      tied: tiedHead(architecture),
    },
  };
}

/**
 * Returns the tensors with the shared matrix of a tied model under the name of its parameter. PEFT copies each module
 * of `modules_to_save`: it keeps the model tied where both are equal, which `checkTied` checks, or where the
 * configuration says so.
 */
function tiedTensors(
  tensors: HeaderTensor[],
  architecture: Architecture,
  { ensure_weight_tying: ensured }: Static<typeof PeftConfig>,
): HeaderTensor[] {
  const embedding = modelParams(architecture)[0]?.name ?? '';
  const head = tiedHead(architecture);
  const has = (wanted: string) => tensors.some(({ name }) => name === wanted);
  if (head === null || has(embedding) === has(head)) return tensors;
  if (ensured)
    return tensors.map((tensor) => (tensor.name === head ? { ...tensor, name: embedding } : tensor));
  const [there, other] = has(embedding) ? [embedding, head] : [head, embedding];
  throw invalid(
    `the weights have ${there} without ${other}, and the base ties the two (tie_word_embeddings): under this adapter they are two different ` +
      'matrices, which a tied model cannot have. Train the adapter with ensure_weight_tying, or merge it (merge_and_unload) into a model with ' +
      'tie_word_embeddings false and upload that',
  );
}

function checked(document: Record<string, unknown>): Static<typeof PeftConfig> {
  for (const [field, value] of Object.entries(document)) {
    if (!isForeign(field, value)) continue;
    throw invalid(
      `${field} is ${JSON.stringify(value).slice(0, 100)}, which has no equivalent here; ` +
        'merge the adapter into its model (merge_and_unload), and upload that',
    );
  }
  if (!check.fits(document)) throw invalid(check.problems().join('; '));
  return document;
}

/** Returns for each chosen module the shortest end of its name that no other module has. */
function shortNames(all: readonly string[], chosen: ReadonlySet<string>): string[] {
  const short = (name: string) => {
    const parts = name.split('.');
    const ends = parts.map((_, at) => parts.slice(at).join('.')).reverse();
    const isOurs = (end: string) => all.every((other) => chosen.has(other) || !isNamed(other, end));
    return ends.find(isOurs) ?? name;
  };
  return [...new Set(all.filter((name) => chosen.has(name)).map(short))];
}

function invalid(problem: string): ZerofleetError {
  return new ZerofleetError('model_config_invalid', `${ADAPTER_CONFIG_FILE}: ${problem}`);
}
