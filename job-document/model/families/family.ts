import type { Architecture } from '../../../contracts/architecture.js';
import type { ResolvedModelConfig } from '../../../contracts/index.js';
import type { ParamNames } from '../parts.js';
import type { ConfigReader } from '../reader.js';

/** Model family: the fields of its `config.json` and their meaning. */
export interface Family<Config extends ResolvedModelConfig = ResolvedModelConfig> {
  /** transformers class of its checkpoints. */
  causalLm: string;
  params: ParamNames;
  /** The family's names of architecture fields, where they differ. */
  fieldNames: Readonly<Partial<Record<keyof Architecture, string>>>;
  /** Returns the configuration with every field; bad fields are the reader's errors. */
  read(reader: ConfigReader): Config;
  architecture(config: Config): Omit<Architecture, 'naming'>;
}
