/** The parts of a JSON schema that describe a field. */
export interface FieldSchema {
  type?: string | readonly string[];
  oneOf?: readonly FieldSchema[];
  $ref?: string;
  items?: FieldSchema;
  enum?: readonly unknown[];
  description?: string;
}

/** Documentation of a field: a row of the tables of docs/models.md. */
export interface FieldFact {
  /** Dotted path. */
  name: string;
  aliases: readonly string[];
  /** Type and range as text. */
  type: string;
  /** Default of an absent field; null for a required one. */
  fallback: string | null;
  /** Of the field's value in a configuration with every field. */
  schema: FieldSchema;
}
