import type { Architecture } from '../../../contracts/architecture.js';
import type { ResolvedModelConfig } from '../../../contracts/index.js';
import type { FieldSchema } from '../field-facts.js';
import type { ParamNames } from '../parts.js';
import type { ConfigReader } from '../reader.js';

export type ModelType = ResolvedModelConfig['model_type'];

/** Configuration of a family with every field: its schema follows from `read` and `fields`. */
export type ConfigOf<Type extends ModelType> = Extract<ResolvedModelConfig, { model_type: Type }>;

/** How llama.cpp has a family. */
interface GgufFamily {
  /** Name of the architecture. */
  name: string;
  /** It rotates neighbouring elements of a head, where the family rotates element i of both halves. */
  pairs?: true;
  /** Scalings of rotary frequencies that it has for this family alone. */
  scalings?: readonly Architecture['rope_scaling']['type'][];
  /** Returns why it would compute something else than the model; null if it computes the same. */
  unsupported?(model: Architecture): string | null;
}

/** Model family: the fields of its `config.json` and their meaning. */
export interface Family<Type extends ModelType = ModelType> {
  description: string;
  /** transformers class of its checkpoints. */
  causalLm: string;
  /** Class in files beside published models whose computation is that of transformers (`auto_map`). */
  ownCode?: string;
  params: ParamNames;
  gguf: GgufFamily;
  /** Schemas of its own fields, and of shared ones (fields.ts) that differ here. */
  fields?: Readonly<Record<string, FieldSchema>>;
  /** The family's names of architecture fields, where they differ. */
  fieldNames: Readonly<Partial<Record<keyof Architecture, string>>>;
  /** Returns the configuration with every field; bad fields are the reader's errors. */
  read(reader: ConfigReader): ConfigOf<Type>;
  architecture(config: ConfigOf<Type>): Omit<Architecture, 'naming'>;
}
