import type { ResolvedModelConfig } from '../../../contracts/index.js';
import type { Architecture } from '../architecture.js';
import type { ConfigReader } from '../reader.js';

/** One model family: what its `config.json` may say, and what that means. */
export interface Family<Config extends ResolvedModelConfig = ResolvedModelConfig> {
  /** The class of transformers that its checkpoints are of. */
  causalLm: string;
  /** Fields of the architecture under the names that the family has for them, where these differ. */
  fieldNames: Readonly<Partial<Record<keyof Architecture, string>>>;
  /** The configuration with every field; bad fields are the reader's errors. */
  read(reader: ConfigReader): Config;
  architecture(config: Config): Architecture;
}
