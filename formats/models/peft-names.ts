/** Names of adapters' parameters in PEFT's files. They have magnitudes without the name of their parameter. */

/** That of a `PeftModel` around a `LoraModel` around the model. */
const PREFIX = 'base_model.model.';

export function peftName(param: string): string {
  return PREFIX + param.replace(/(\.lora_magnitude_vector)\.weight$/, '$1');
}

/** Returns the parameter of a name in a file; the name itself if it is not one of PEFT's. */
export function paramOfPeft(name: string): string {
  const param = name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  return param.replace(/(\.lora_magnitude_vector)$/, '$1.weight');
}
