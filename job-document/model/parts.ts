/**
 * Parts of a decoder that have parameters. PARTS says what the parameters of a part are, for all families; ParamNames
 * says which parts a family has and how it names them. The table of the native core is generated from both
 * (tools/contract/model-parts.ts).
 */
import type { Architecture } from '../../contracts/architecture.js';

/** Facts of an architecture that follow from its fields; `model_config.h` has functions of these names. */
const DERIVED = {
  query_size: (model: Architecture) => model.num_attention_heads * model.head_dim,
  gate_up_size: (model: Architecture) => 2 * model.intermediate_size,
  key_value_size: (model: Architecture) => model.num_key_value_heads * model.head_dim,
  qkv_size: (model: Architecture) =>
    (model.num_attention_heads + 2 * model.num_key_value_heads) * model.head_dim,
  query_norm_size: (model: Architecture) =>
    model.qk_norm_scope === 'all' ? model.num_attention_heads * model.head_dim : model.head_dim,
  key_norm_size: (model: Architecture) =>
    model.qk_norm_scope === 'all' ? model.num_key_value_heads * model.head_dim : model.head_dim,
  norm_bias: (model: Architecture) => model.norm === 'layer',
  /** One logit of the expert of all tokens. */
  shared_logits: () => 1,
  own_head: (model: Architecture) => !model.tie_word_embeddings,
};

type Derived = typeof DERIVED;
/** Names of the fields and derived facts with values of one type. */
type Facts<Value> =
  | { [Name in keyof Architecture]: Architecture[Name] extends Value ? Name : never }[keyof Architecture]
  | { [Name in keyof Derived]: ReturnType<Derived[Name]> extends Value ? Name : never }[keyof Derived];
type Size = Facts<number>;
type Condition = Facts<boolean>;

export interface PartParams {
  /**
   * `embedding`: a matrix (out, in). `norm`: a vector (out). `linear`: a matrix (out, in), or (in, out) if the family
   * stores weights so. `router`: a linear that is never quantized, because its rounding would change which experts a
   * token has.
   */
  kind: 'embedding' | 'norm' | 'linear' | 'router';
  /** Columns of the input; a norm has none. */
  in?: Size;
  out: Size;
  /** The part has a bias (out). Default: never. */
  bias?: Condition;
  /** The model has the part. Default: always, if its family has it. */
  when?: Condition;
  /** The output is added to the residual stream, which matters for the first values. */
  to_residual?: true;
}

const hidden = 'hidden_size' as const;
const inner = 'intermediate_size' as const;

export const PARTS = {
  embed: { kind: 'embedding', in: hidden, out: 'vocab_size' },
  positions: { kind: 'embedding', in: hidden, out: 'max_position_embeddings' },
  input_norm: { kind: 'norm', out: hidden, bias: 'norm_bias' },
  /** Queries, keys and values in one matrix. */
  qkv: { kind: 'linear', in: hidden, out: 'qkv_size', bias: 'qkv_bias' },
  query: { kind: 'linear', in: hidden, out: 'query_size', bias: 'qkv_bias' },
  key: { kind: 'linear', in: hidden, out: 'key_value_size', bias: 'qkv_bias' },
  value: { kind: 'linear', in: hidden, out: 'key_value_size', bias: 'qkv_bias' },
  query_norm: { kind: 'norm', out: 'query_norm_size', when: 'qk_norm' },
  key_norm: { kind: 'norm', out: 'key_norm_size', when: 'qk_norm' },
  /** Of attention. */
  output: { kind: 'linear', in: 'query_size', out: hidden, bias: 'output_bias', to_residual: true },
  /** Of the outputs of attention and MLP, before they are added to the residual stream. */
  attention_output_norm: { kind: 'norm', out: hidden, bias: 'norm_bias' },
  mlp_output_norm: { kind: 'norm', out: hidden, bias: 'norm_bias' },
  /** Before the MLP. */
  post_attention_norm: { kind: 'norm', out: hidden, bias: 'norm_bias' },
  /** An expert of all tokens, and the logit of a token for it. */
  shared_gate: { kind: 'linear', in: hidden, out: 'shared_expert_size' },
  shared_up: { kind: 'linear', in: hidden, out: 'shared_expert_size' },
  shared_down: { kind: 'linear', in: 'shared_expert_size', out: hidden, to_residual: true },
  shared_router: { kind: 'router', in: hidden, out: 'shared_logits' },
  router: { kind: 'router', in: hidden, out: 'num_experts' },
  /** An MLP with a gate has `gate`, `up` and `down`, or `gate_up` and `down`; one without has `up` and `down`. */
  gate: { kind: 'linear', in: hidden, out: inner, bias: 'mlp_bias' },
  up: { kind: 'linear', in: hidden, out: inner, bias: 'mlp_bias' },
  /** Gate above up in one matrix. */
  gate_up: { kind: 'linear', in: hidden, out: 'gate_up_size', bias: 'mlp_bias' },
  down: { kind: 'linear', in: inner, out: hidden, bias: 'mlp_bias', to_residual: true },
  norm: { kind: 'norm', out: hidden, bias: 'norm_bias' },
  /** The output projection. With `tie_word_embeddings` the embedding is in its place. */
  head: { kind: 'embedding', in: hidden, out: 'vocab_size', when: 'own_head' },
} as const satisfies Readonly<Record<string, PartParams>>;

export type Part = keyof typeof PARTS;
export type MatrixPart = { [P in Part]: (typeof PARTS)[P] extends { in: string } ? P : never }[Part];

/** Names of the parameters of one or several families. */
export interface ParamNames {
  /** Name of these names. */
  naming: string;
  /** Matrices of linears are stored as (in, out), not (out, in). */
  in_first: boolean;
  /**
   * The module of each part, in canonical order, about that of the forward pass. `{}` stands for the number of a
   * layer, then of an expert: a module of experts has two.
   */
  modules: Readonly<Record<'embed' | 'norm' | 'head', string> & Partial<Record<Part, string>>>;
  /**
   * Tensors of transformers 5 whose names are not those of the parameters in files. The weights of all experts of a
   * layer are in one tensor.
   */
  tensors?: Readonly<Partial<Record<Part, string>>>;
}

/** Returns the parts of a model with their modules, in canonical order. */
export function partsOf(names: ParamNames, model: Architecture): [part: Part, module: string][] {
  return (Object.entries(names.modules) as [Part, string][]).filter(([part]) => {
    const { when }: PartParams = PARTS[part];
    return when === undefined || factOf(model, when);
  });
}

/** Returns the value of a field or of a derived fact. */
export function factOf<Name extends keyof Architecture | keyof Derived>(
  model: Architecture,
  name: Name,
): Name extends keyof Derived ? ReturnType<Derived[Name]> : Architecture[Name & keyof Architecture];
export function factOf(model: Architecture, name: keyof Architecture | keyof Derived): unknown {
  return isDerived(name) ? DERIVED[name](model) : model[name];
}

export function isDerived(name: keyof Architecture | keyof Derived): name is keyof Derived {
  return name in DERIVED;
}
