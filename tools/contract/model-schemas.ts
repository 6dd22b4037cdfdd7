/** Schemas of the families' configurations, for contracts/openapi/schemas/model-families.yaml. */

import { configSchema, describedFamily, MODEL_TYPES, type ModelType } from '../../job-document/index.js';

const shared = (name: string) => ({ $ref: `model-config.yaml#/${name}` });
const MODEL_TYPE = { type: 'string', description: 'The model family.' };

/** `gemma3_text` → `ResolvedGemma3Config`. */
function schemaName(type: ModelType): string {
  const words = type
    .replace(/_text$/, '')
    .replace(/(?:^|_)(.)/g, (_, letter: string) => letter.toUpperCase());
  return `Resolved${words}Config`;
}

function familySchema(type: ModelType) {
  const properties = { ...configSchema(type), model_type: { ...MODEL_TYPE, enum: [type] } };
  return {
    type: 'object',
    description: describedFamily(type),
    additionalProperties: false,
    required: Object.keys(properties),
    properties: {
      ...properties,
      bos_token_id: shared('TokenIds'),
      eos_token_id: shared('TokenIds'),
      pad_token_id: shared('TokenIds'),
    },
  };
}

export function modelSchemas(): Record<string, object> {
  return {
    ModelType: { ...MODEL_TYPE, enum: MODEL_TYPES },
    ResolvedModelConfig: {
      description: 'The configuration with every field of its family, as spelled by transformers 4.',
      oneOf: MODEL_TYPES.map((type) => ({ $ref: `#/${schemaName(type)}` })),
    },
    ...Object.fromEntries(MODEL_TYPES.map((type) => [schemaName(type), familySchema(type)])),
  };
}
