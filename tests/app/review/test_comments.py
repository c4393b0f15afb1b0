"""Comments are decisions: the last on a subject counts, undo brings the earlier one back."""

from dataclasses import replace

from raterscope.app.review import CommentSubject, Decision, differ, find_comment, fold, is_bookmarked, undo

SPOT = CommentSubject(of="clicks", number=3, x=10.0, y=20.0)
IMAGE = CommentSubject(of="clicks")


def comment(number, subject, text, item=1):
    return Decision(
        id=number, verb="comment" if text else "uncomment", item=item, subject=subject, reason=text
    )


def test_the_last_comment_on_a_spot_counts_and_the_image_has_its_own():
    moved = CommentSubject(of="clicks", number=8, x=11.0, y=20.5)
    far = CommentSubject(of="clicks", number=3, x=40.0, y=20.0)
    journal = [comment(1, SPOT, "ring?"), comment(2, IMAGE, "thick"), comment(3, moved, "platelet")]
    state = fold(journal)
    comments = state.comments("clicks", 1)
    assert [decision.reason for decision in comments] == ["thick", "platelet"]
    assert find_comment(comments, SPOT) == "platelet"
    assert find_comment(comments, IMAGE) == "thick"
    assert find_comment(comments, far) == ""
    assert [state.status(number) for number in (1, 2, 3)] == ["superseded", "in effect", "in effect"]
    assert not state.comments("clicks", 2)
    assert not differ(fold([]), state, "clicks")


def test_undo_brings_the_earlier_comment_back_and_an_empty_one_removes_it():
    journal = [comment(1, SPOT, "ring?"), comment(2, SPOT, "")]
    assert fold(journal).comments("clicks", 1) == []
    undone = undo(fold(journal))
    assert undone.undoes == 2
    journal.append(Decision(id=3, verb="undo", undoes=2))
    assert find_comment(fold(journal).comments("clicks", 1), SPOT) == "ring?"


def test_a_region_of_another_run_keeps_the_comment_where_most_of_the_boxes_overlaps():
    first = CommentSubject(of="masks", name="liver", number=1, origin=(0, 4, 4), shape=(1, 5, 5))
    again = CommentSubject(of="masks", name="liver", number=2, origin=(0, 4, 3), shape=(1, 5, 6))
    around = CommentSubject(of="masks", name="liver", number=4, origin=(0, 2, 2), shape=(2, 9, 9))
    beside = CommentSubject(of="masks", name="liver", number=3, origin=(0, 9, 4), shape=(1, 2, 2))
    comments = fold([comment(1, first, "vessel")]).comments("masks", 1)
    assert find_comment(comments, again) == "vessel"
    assert find_comment(comments, beside) == ""
    assert find_comment(comments, around) == ""
    assert find_comment(comments, CommentSubject(of="masks", name="liver")) == ""


def test_regions_of_one_run_have_their_own_comments_and_bookmarks_where_their_boxes_overlap():
    first = CommentSubject(of="masks", name="liver", number=1, origin=(0, 4, 4), shape=(1, 5, 5))
    second = CommentSubject(of="masks", name="liver", number=2, origin=(0, 4, 3), shape=(1, 5, 6))
    journal = [
        replace(comment(1, first, "vessel"), run=7),
        replace(comment(2, second, "border"), run=7),
        Decision(id=3, verb="bookmark", item=1, subject=first, run=7),
    ]
    state = fold(journal)
    comments, bookmarks = state.comments("masks", 1), state.bookmarks("masks", 1)
    assert [find_comment(comments, region, 7) for region in (first, second)] == ["vessel", "border"]
    assert [is_bookmarked(bookmarks, region, 7) for region in (first, second)] == [True, False]
    assert is_bookmarked(bookmarks, second, 8)


def test_words_name_the_subject():
    assert SPOT.in_words("comment") == "comment on spot 3"
    assert IMAGE.in_words("uncomment") == "remove the comment on the image"
    assert SPOT.in_words("unbookmark") == "remove the bookmark of spot 3"
    assert CommentSubject(of="labels", name="t7").noun() == "task t7"
    assert CommentSubject(of="pairs", name="kim").noun() == "annotator kim"
