/** Models: what a Hugging Face `config.json` may say, and the architecture that it describes. */
export { type Architecture, architectureOf, type RopeScalingParams } from './architecture.js';
export { causalLmClass, floatFields, type ImportedConfig, importConfig } from './import.js';
