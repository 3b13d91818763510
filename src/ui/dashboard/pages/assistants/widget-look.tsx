// The widget's look, texts and form beside the widget itself.
import { Card } from "#ui/dashboard/kit/layout.tsx";
import { WidgetPreview } from "./preview.tsx";
import { WidgetFields } from "./sections/widget.tsx";

export function WidgetLook() {
  return (
    <div class="assistants-bench">
      <Card title="Look, texts and form">
        <div class="assistants-body assistants-look"><WidgetFields /></div>
      </Card>
      <aside class="assistants-pane" aria-label="Preview"><WidgetPreview /></aside>
    </div>
  );
}
