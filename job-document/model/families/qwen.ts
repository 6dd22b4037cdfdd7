/** Windows of a Qwen: some layers may have one. */
import type { ConfigReader } from '../reader.js';
import type { ConfigOf } from './family.js';
import { readLayerTypes, readSwitchedWindow } from './layer-types.js';

type Windows = Pick<
  ConfigOf<'qwen2'>,
  'use_sliding_window' | 'sliding_window' | 'max_window_layers' | 'layer_types'
>;

/** @param slides returns whether a layer has the window by default */
export function readQwenWindows(
  reader: ConfigReader,
  layers: number,
  slides = (layer: number, maxWindowLayers: number) => layer >= maxWindowLayers,
): Windows {
  const window = readSwitchedWindow(reader, 4096);
  const maxWindowLayers = reader.integer('max_window_layers', { min: 0, max: 1024, fallback: 28 });
  return {
    ...window,
    max_window_layers: maxWindowLayers,
    layer_types: readLayerTypes(reader, layers, window.sliding_window, (layer) =>
      slides(layer, maxWindowLayers),
    ),
  };
}
